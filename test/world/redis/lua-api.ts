import lua51 from 'wasmoon-lua5.1';

// Lua 5.1, which Redis has, compiled to WebAssembly: one for all of the process.

/** Lua's C API, as far as it is needed. A function that is called by Lua is an index of the module's table of functions. */
interface LuaModule {
  readonly HEAPU8: Uint8Array;
  addFunction(run: (L: number) => number, signature: 'ii'): number;
  _malloc(bytes: number): number;
  _free(at: number): void;
  _luaL_newstate(): number;
  _luaL_openlibs(L: number): void;
  _luaL_loadbuffer(L: number, at: number, bytes: number, name: number): number;
  _luaL_ref(L: number, table: number): number;
  _luaL_where(L: number, level: number): void;
  _lua_checkstack(L: number, more: number): number;
  _lua_concat(L: number, texts: number): void;
  _lua_createtable(L: number, items: number, fields: number): void;
  _lua_error(L: number): number;
  _lua_gettop(L: number): number;
  _lua_next(L: number, index: number): number;
  _lua_objlen(L: number, index: number): number;
  _lua_pcall(L: number, args: number, results: number, handler: number): number;
  _lua_pushboolean(L: number, value: number): void;
  _lua_pushcclosure(L: number, run: number, upvalues: number): void;
  _lua_pushlightuserdata(L: number, value: number): void;
  _lua_pushlstring(L: number, at: number, bytes: number): void;
  _lua_pushnil(L: number): void;
  _lua_pushnumber(L: number, value: number): void;
  _lua_pushvalue(L: number, index: number): void;
  _lua_rawget(L: number, table: number): void;
  _lua_rawgeti(L: number, table: number, index: number): void;
  _lua_rawset(L: number, table: number): void;
  _lua_rawseti(L: number, table: number, index: number): void;
  _lua_settop(L: number, index: number): void;
  _lua_toboolean(L: number, index: number): number;
  _lua_tolstring(L: number, index: number, bytes: number): number;
  _lua_tonumber(L: number, index: number): number;
  _lua_type(L: number, index: number): number;
}

export const REGISTRY = -10_000;
export const GLOBALS = -10_002;
export const TYPE = { boolean: 1, lightuserdata: 2, number: 3, string: 4, table: 5 } as const;

// The package's types of its module are missing from it.
export const lua = (await lua51.LuaApi.initialize()).module as unknown as LuaModule;
export const state = lua._luaL_newstate();
lua._luaL_openlibs(state);

const WORD = 32;
let scratch = 0;
let scratchBytes = 0;

/** Puts a text into Lua's memory, until the next one comes; returns where it is. */
export function place(text: string): number {
  if (text.length > scratchBytes) {
    lua._free(scratch);
    scratchBytes = Math.max(4_096, 2 * text.length);
    scratch = lua._malloc(scratchBytes);
  }
  const bytes = heap();
  // A call of Node's takes longer than to copy a word.
  if (text.length > WORD) bytes.write(text, scratch, 'latin1');
  else for (let at = 0; at < text.length; at += 1) bytes[scratch + at] = text.charCodeAt(at);
  return scratch;
}

let memory: Buffer = Buffer.alloc(0);

/** Lua's memory: another one when it has grown. */
function heap(): Buffer {
  if (memory.buffer !== lua.HEAPU8.buffer) memory = Buffer.from(lua.HEAPU8.buffer);
  return memory;
}

/** Onto the stack. */
export function pushText(L: number, text: string): void {
  lua._lua_pushlstring(L, place(text), text.length);
}

/** The text at this index of the stack, also of a number, which it makes a text there. */
export function textAt(L: number, index: number): string {
  const at = lua._lua_tolstring(L, index, 0);
  return heap().toString('latin1', at, at + lua._lua_objlen(L, index));
}
