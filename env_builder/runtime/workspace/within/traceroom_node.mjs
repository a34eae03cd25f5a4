// A reporter of the test runner of Node.js (18.20, 20 and later): JUnit XML that names the file of each test, which the
// runner's own reporter does not. A test is within the suites, and tests, that it is defined in; a file that cannot be loaded,
// or defines no test, is a test by itself, without a name.
import { isAbsolute, relative, resolve } from 'node:path';

const ESCAPED = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\n': '&#10;', '\r': '&#13;', '\t': '&#9;' };

function text(value) {
  return String(value).replace(/[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD')
    .replace(/[&<>"\n\r\t]/g, (each) => ESCAPED[each]);
}

function message(error) {
  const cause = error?.cause ?? error;
  return cause?.stack ?? cause?.message ?? cause;
}

function testcase({ name, file, details, skip, todo }, within, failed) {
  const isFile = isAbsolute(name) || (file !== undefined && resolve(name) === resolve(file));
  const place = file ?? (isFile ? name : undefined);
  const attributes = { name: isFile ? '' : name, classname: 'test', time: (details?.duration_ms ?? 0) / 1000,
    ...(place ? { file: isAbsolute(place) ? relative(process.cwd(), place) : place } : {}) };
  const shown = Object.entries(attributes).map(([key, value]) => ` ${key}="${text(value)}"`).join('');
  const isSkipped = (skip !== undefined && skip !== false) || (todo !== undefined && todo !== false);
  const outcome = isSkipped ? '<skipped/>' : failed ? `<failure>${text(message(details?.error))}</failure>` : '';
  const [before, after] = [within.map((suite) => `<testsuite name="${text(suite)}">`), within.map(() => '</testsuite>')];
  return `${before.join('')}<testcase${shown}>${outcome}</testcase>${after.join('')}\n`;
}

export default async function* report(events) {
  yield '<?xml version="1.0" encoding="utf-8"?>\n<testsuites>\n';
  let names = [];
  for await (const { type, data } of events) {
    if (type === 'test:start') {
      names = [...names.slice(0, data.nesting), data.name];
    } else if ((type === 'test:pass' || type === 'test:fail') && data.details?.type !== 'suite') {
      yield testcase(data, names.slice(0, data.nesting), type === 'test:fail');
    }
  }
  yield '</testsuites>\n';
}
