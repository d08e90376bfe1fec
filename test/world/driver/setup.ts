import { replaceBuiltins } from './builtins.js';

replaceBuiltins();
