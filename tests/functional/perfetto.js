// Loads a trace into Perfetto's trace processor and prints the rows of each query as JSON.
// `node perfetto.js FOLDER TRACE SQL...`: FOLDER has engine_bundle.js and trace_processor*.wasm of
// the viewer. The bundle runs in a worker of a browser; this script gives it the parts of a worker
// that it uses.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');

const [folder, trace, ...queries] = process.argv.slice(2);
const APPEND = 1, FINALIZE = 2, QUERY = 3;

// The protocol is a stream of protobuf messages (`perfetto/trace_processor/trace_processor.proto`).
// The value of a field is a BigInt, or the bytes of a text, a message or a packed list.
const varint = value => {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
};
const field = (number, value) =>
  typeof value === 'number'
    ? Buffer.concat([varint(number << 3), varint(value)])
    : Buffer.concat([varint((number << 3) | 2), varint(value.length), value]);

function reader(bytes) {
  let at = 0;
  const number = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error('a message is cut off');
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const take = length => {
    at += length;
    if (at > bytes.length) throw new Error('a message is cut off');
    return bytes.subarray(at - length, at);
  };
  return {number, take, left: () => bytes.length - at};
}

function* fields(bytes) {
  const {number, take, left} = reader(bytes);
  while (left() > 0) {
    const key = number();
    const kind = Number(key & 7n);
    const value = kind === 0 ? number() : take(kind === 1 ? 8 : kind === 5 ? 4 : Number(number()));
    yield [Number(key >> 3n), value];
  }
}

function* packed(bytes) {
  const {number, left} = reader(bytes);
  while (left() > 0) yield number();
}

// QueryResult: 1 names of columns, 2 error, 3 batches of cells.
function rowsOf(answers) {
  const columns = [];
  const cells = [];
  for (const [number, value] of answers.flatMap(answer => [...fields(answer)])) {
    if (number === 1) columns.push(value.toString());
    if (number === 2) throw new Error(value.toString());
    if (number !== 3) continue;
    const batch = {kinds: [], numbers: [], floats: [], texts: []};
    for (const [part, data] of fields(value)) {
      if (part === 1) batch.kinds.push(...packed(data));
      if (part === 2) batch.numbers.push(...packed(data));
      if (part === 3) for (let at = 0; at < data.length; at += 8) batch.floats.push(data.readDoubleLE(at));
      if (part === 5) batch.texts.push(...data.toString().split('\0'));
    }
    for (const kind of batch.kinds) {
      cells.push(
        kind === 2n ? Number(BigInt.asIntN(64, batch.numbers.shift()))
        : kind === 3n ? batch.floats.shift()
        : kind === 4n ? batch.texts.shift()
        : null);
    }
  }
  const rows = [];
  for (let at = 0; at < cells.length; at += columns.length) {
    rows.push(Object.fromEntries(columns.map((name, column) => [name, cells[at + column]])));
  }
  return rows;
}

const worker = {
  console: {log() {}, warn() {}, error: console.error},
  TextDecoder, TextEncoder, URL, performance, setTimeout, clearTimeout,
  location: {href: 'http://localhost/engine_bundle.js'},
  WorkerGlobalScope: class {},
  importScripts() {},
  XMLHttpRequest: class {
    open(_method, url) {
      this.file = path.join(folder, path.basename(url));
    }
    send() {
      const bytes = fs.readFileSync(this.file);
      this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
      this.status = 200;
    }
  },
};
worker.self = worker;
vm.createContext(worker);
vm.runInContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'), worker);
const OwnBytes = vm.runInContext('Uint8Array', worker);

const steps = [
  [APPEND, field(101, fs.readFileSync(trace))],
  [FINALIZE, Buffer.alloc(0)],
  ...queries.map(sql => [QUERY, field(103, field(1, Buffer.from(sql)))]),
];
const results = queries.map(() => []);
const port = {postMessage: bytes => receive(Buffer.from(bytes))};
let sent = 0;

function send() {
  if (sent === steps.length) {
    process.stdout.write(JSON.stringify(results.map(rowsOf)));
    return;
  }
  const [method, argument] = steps[sent++];
  const message = Buffer.concat([field(1, sent), field(2, method), argument]);
  port.onmessage({data: new OwnBytes(field(1, message))});
}

// TraceProcessorRpc: 3 the method that is answered, 4 and 5 errors, 201 and 209 the results of a
// part of the trace and of its end, 203 a part of the result of a query.
function receive(stream) {
  for (const [, message] of fields(stream)) {
    const parts = new Map(fields(message));
    for (const error of [4, 5]) {
      if (parts.has(error)) throw new Error(`refused: ${parts.get(error)}`);
    }
    for (const result of [201, 209].filter(number => parts.has(number))) {
      const error = new Map(fields(parts.get(result))).get(2);
      if (error !== undefined) throw new Error(error.toString());
    }
    if (parts.has(203)) {
      results[sent - 1 - (steps.length - queries.length)].push(parts.get(203));
      if (!isLast(parts.get(203))) continue;
    }
    setImmediate(send);
  }
}

// An error ends a result; else its last batch has the field 6.
function isLast(result) {
  const parts = [...fields(result)];
  const marks = ([number, batch]) => number === 3 && new Map(fields(batch)).get(6) === 1n;
  return parts.some(([number]) => number === 2) || parts.some(marks);
}

worker.onmessage({data: port});
// The module is ready after the microtasks of the bundle.
setImmediate(send);
