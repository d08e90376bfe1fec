import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { decodeJson, encodeJson, JSON_NULL, type LuaTable, type LuaValue } from './cjson.js';
import { GLOBALS, lua, place, pushText, REGISTRY, state, textAt, TYPE } from './lua-api.js';
import { formatDouble } from './number-text.js';
import { plain, RedisError, Status, type PlainReply, type Reply } from './reply.js';

// Runs the scripts of every Redis in this process: one is compiled once, and keeps nothing between two runs.

function pushField(L: number, name: string, text: string): void {
  lua._lua_createtable(L, 0, 1);
  pushText(L, name);
  pushText(L, text);
  lua._lua_rawset(L, -3);
}

/** What a command answered, as a script sees it. */
function pushReply(L: number, reply: PlainReply): void {
  if (typeof reply === 'string') pushText(L, reply);
  else if (typeof reply === 'number') lua._lua_pushnumber(L, reply);
  else if (reply === null) lua._lua_pushboolean(L, 0);
  else if (reply instanceof RedisError) pushField(L, 'err', reply.message);
  else if (reply instanceof Status) pushField(L, 'ok', reply.text);
  else {
    lua._lua_checkstack(L, 4);
    lua._lua_createtable(L, reply.length, 0);
    reply.forEach((item, at) => {
      pushReply(L, item);
      lua._lua_rawseti(L, -2, at + 1);
    });
  }
}

/** The text of a field of the table at the top of the stack; `null`: it has none. */
function fieldText(L: number, name: string): string | null {
  pushText(L, name);
  lua._lua_rawget(L, -2);
  const type = lua._lua_type(L, -1);
  const text = type === TYPE.string || type === TYPE.number ? textAt(L, -1) : null;
  lua._lua_settop(L, -2);
  return text;
}

/** As C casts a number to 64 bits; what they do not hold becomes the least that they do. */
function toInteger(value: number): number {
  return Math.abs(value) < 2 ** 63 ? Math.trunc(value) : -(2 ** 63);
}

/** What a script returned, at the top of the stack, as an answer. */
function takeReply(L: number): Reply {
  const type = lua._lua_type(L, -1);
  if (type === TYPE.string) return textAt(L, -1);
  if (type === TYPE.number) return toInteger(lua._lua_tonumber(L, -1));
  if (type === TYPE.boolean) return lua._lua_toboolean(L, -1) === 1 ? 1 : null;
  if (type !== TYPE.table) return null;
  const error = fieldText(L, 'err');
  if (error !== null) return new RedisError(error);
  const status = fieldText(L, 'ok');
  if (status !== null) return new Status(status);
  const items: Reply[] = [];
  lua._lua_checkstack(L, 4);
  for (;;) {
    lua._lua_rawgeti(L, -1, items.length + 1);
    const isEnd = lua._lua_type(L, -1) <= 0;
    if (!isEnd) items.push(takeReply(L));
    lua._lua_settop(L, -2);
    if (isEnd) return items;
  }
}

/** The command that the running script has sent, if it is one. */
function commandOf(L: number): string[] | RedisError {
  const count = lua._lua_gettop(L);
  if (count === 0) return new RedisError('ERR Please specify at least one argument for this redis lib call');
  const words: string[] = [];
  for (let index = 1; index <= count; index += 1) {
    const type = lua._lua_type(L, index);
    if (type === TYPE.number) words.push(formatDouble(lua._lua_tonumber(L, index)));
    else if (type === TYPE.string) words.push(textAt(L, index));
    else return new RedisError('ERR Lua redis lib command arguments must be strings or integers');
  }
  return words;
}

type SendCommand = (words: readonly string[]) => Reply;

/** Where commands of the script go that runs. */
let send: SendCommand = () => null;

/** @param raises an error ends the script, unless it is caught */
function pushCommandFunction(raises: boolean): void {
  const run = lua.addFunction((L) => {
    const words = commandOf(L);
    const reply = words instanceof RedisError ? words : send(words);
    lua._lua_settop(L, 0);
    pushReply(L, plain(reply));
    return raises && reply instanceof RedisError ? lua._lua_error(L) : 1;
  }, 'ii');
  lua._lua_pushcclosure(state, run, 0);
}

function pushValue(L: number, value: LuaValue): void {
  lua._lua_checkstack(L, 4);
  if (typeof value === 'string') pushText(L, value);
  else if (typeof value === 'number') lua._lua_pushnumber(L, value);
  else if (typeof value === 'boolean') lua._lua_pushboolean(L, value ? 1 : 0);
  else if (value === JSON_NULL) lua._lua_pushlightuserdata(L, 0);
  else {
    lua._lua_createtable(L, 0, value.size);
    for (const [key, item] of value) {
      pushValue(L, key);
      pushValue(L, item);
      lua._lua_rawset(L, -3);
    }
  }
}

/** The value at the top of the stack; `undefined`: JSON has none like it. */
function valueAtTop(L: number): LuaValue | undefined {
  const type = lua._lua_type(L, -1);
  if (type === TYPE.string) return textAt(L, -1);
  if (type === TYPE.number) return lua._lua_tonumber(L, -1);
  if (type === TYPE.boolean) return lua._lua_toboolean(L, -1) === 1;
  if (type === TYPE.lightuserdata || type === 0) return JSON_NULL;
  if (type !== TYPE.table) return undefined;
  const table: LuaTable = new Map();
  lua._lua_checkstack(L, 4);
  lua._lua_pushnil(L);
  while (lua._lua_next(L, -2) !== 0) {
    const value = valueAtTop(L);
    // The key stays as it is: to read a number as a text would lose the place.
    const key = lua._lua_type(L, -2) === TYPE.number ? lua._lua_tonumber(L, -2) : textAt(L, -2);
    if (value === undefined) return undefined;
    table.set(key, value);
    lua._lua_settop(L, -2);
  }
  return table;
}

function pushJsonFunction(convert: (L: number) => LuaValue | RedisError): void {
  const run = lua.addFunction((L) => {
    const value = convert(L);
    lua._lua_settop(L, 0);
    if (value instanceof RedisError) {
      lua._luaL_where(L, 1);
      pushText(L, value.message);
      lua._lua_concat(L, 2);
      return lua._lua_error(L);
    }
    pushValue(L, value);
    return 1;
  }, 'ii');
  lua._lua_pushcclosure(state, run, 0);
}

/** Compiles a text, onto the stack; returns what is wrong with it. */
function load(source: string, name: string): string | null {
  const text = `${source}${name}\0`;
  const at = place(text);
  if (lua._luaL_loadbuffer(state, at, source.length, at + source.length) === 0) return null;
  const error = textAt(state, -1);
  lua._lua_settop(state, -2);
  return error;
}

load(readFileSync(new URL('./sandbox.lua', import.meta.url), 'latin1'), '@sandbox');
pushCommandFunction(true);
pushCommandFunction(false);
pushJsonFunction((L) => decodeJson(textAt(L, 1)));
pushJsonFunction((L) => {
  lua._lua_settop(L, 1);
  const value = valueAtTop(L);
  return value === undefined ? new RedisError('Cannot serialise: type not supported') : encodeJson(value);
});
lua._lua_pushlightuserdata(state, 0);
if (lua._lua_pcall(state, 5, 1, 0) !== 0) throw new Error(textAt(state, -1));
/** It stays the first of the stack. */
const HANDLER = lua._lua_gettop(state);

const sha1s = new Map<string, string>();
const functions = new Map<string, number>();

/** In hex. */
export function sha1Of(source: string): string {
  let sha1 = sha1s.get(source);
  if (sha1 === undefined) {
    sha1 = createHash('sha1').update(source, 'latin1').digest('hex');
    sha1s.set(source, sha1);
  }
  return sha1;
}

/** Throws `RedisError` for what is no Lua. */
export function compile(sha1: string, source: string): void {
  if (functions.has(sha1)) return;
  const error = load(source, '@user_script');
  if (error !== null) throw new RedisError(`ERR Error compiling script (new function): ${error}`);
  functions.set(sha1, lua._luaL_ref(state, REGISTRY));
}

function setGlobal(name: string, texts: readonly string[]): void {
  pushText(state, name);
  pushReply(state, texts);
  lua._lua_rawset(state, GLOBALS);
}

/** Runs a script that was compiled. Returns also the error that ended it. */
export function runCompiled(sha1: string, keys: readonly string[], args: readonly string[], sendCommand: SendCommand): Reply {
  setGlobal('KEYS', keys);
  setGlobal('ARGV', args);
  lua._lua_rawgeti(state, REGISTRY, functions.get(sha1) ?? 0);
  send = sendCommand;
  try {
    if (lua._lua_pcall(state, 0, 1, HANDLER) === 0) return takeReply(state);
    const [error, source, line] = ['err', 'source', 'line'].map((name) => fieldText(state, name));
    const where = source == null || line == null ? '' : ` script: ${sha1}, on ${source}:${line}.`;
    return new RedisError(`${error ?? ''}${where}`);
  } finally {
    lua._lua_settop(state, HANDLER);
  }
}
