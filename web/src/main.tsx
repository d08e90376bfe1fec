import { render } from 'preact';
import { App } from './app.js';
import { followLinks } from './location.js';
import './styles/main.css';

followLinks();
const root = document.getElementById('console');
if (root !== null) render(<App />, root);
