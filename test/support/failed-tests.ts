import { watchTests } from './left-logs.js';

watchTests();
