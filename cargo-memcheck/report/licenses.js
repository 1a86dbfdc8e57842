// Prints the licenses of the libraries that the bundle contains.

import { readdirSync, readFileSync } from 'node:fs';

const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const inBundle = Object.entries(packages).filter(([path, { dev }]) => path !== '' && !dev);
console.log('The script and the style of the HTML report contain these libraries.');
for (const [path, { version, license }] of inBundle.sort(([a], [b]) => (a < b ? -1 : 1))) {
  const file = readdirSync(path).find((name) => /^licen[cs]e/i.test(name));
  const text = readFileSync(`${path}/${file}`, 'utf8').trim();
  console.log(`\n${'='.repeat(80)}\n${path.replace('node_modules/', '')} ${version}, ${license}\n\n${text}`);
}
