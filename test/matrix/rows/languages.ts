/** What runs the programs of agents: interpreters, virtual machines and compiled programs, each with its memory and threads. */

import { counter, type Program } from "../program.ts";

const PYTHON = `import random, sys
me, n = random.getrandbits(32), 0
print(me, n, flush=True)
for _ in sys.stdin:
    n += 1
    print(me, n, flush=True)
`;

const NODE = `const me = Math.floor(Math.random() * 2 ** 32);
let n = 0;
console.log(me, n);
require("node:readline").createInterface({ input: process.stdin }).on("line", () => console.log(me, ++n));
`;

/** The number is in memory that both threads share. */
const WORKER_THREADS = `const { Worker, isMainThread, workerData } = require("node:worker_threads");
if (isMainThread) {
  const shared = new SharedArrayBuffer(4);
  const worker = new Worker(__filename, { workerData: shared });
  const say = () => console.log(process.pid, Atomics.load(new Int32Array(shared), 0));
  worker.on("message", say);
  require("node:readline").createInterface({ input: process.stdin }).on("line", () => worker.postMessage(1));
} else {
  const { parentPort } = require("node:worker_threads");
  parentPort.on("message", () => {
    Atomics.add(new Int32Array(workerData), 0, 1);
    parentPort.postMessage("counted");
  });
  parentPort.postMessage("begun");
}
`;

const MULTIPROCESSING = `import multiprocessing, os, sys
def work(connection, total):
    while connection.recv() is not None:
        with total.get_lock():
            total.value += 1
        connection.send(total.value)
if __name__ == "__main__":
    total = multiprocessing.Value("i", 0)
    workers = []
    for _ in range(4):
        here, there = multiprocessing.Pipe()
        multiprocessing.Process(target=work, args=(there, total), daemon=True).start()
        workers.append(here)
    print(os.getpid(), 0, flush=True)
    for _ in sys.stdin:
        worker = workers[total.value % len(workers)]
        worker.send(1)
        print(os.getpid(), worker.recv(), flush=True)
`;

const PERL = `$| = 1;
my ($me, $n) = (int(rand(2 ** 31)), 0);
print "$me $n\\n";
while (<STDIN>) { $n++; print "$me $n\\n" }
`;

const RUBY = `$stdout.sync = true
me, n = rand(2**31), 0
puts "#{me} #{n}"
while $stdin.gets
  n += 1
  puts "#{me} #{n}"
end
`;

const PHP = `<?php
[$me, $n] = [random_int(0, 2 ** 31), 0];
echo "$me $n\\n";
while (fgets(STDIN) !== false) { $n++; echo "$me $n\\n"; }
`;

const LUA = `io.stdout:setvbuf("no")
local me, n = math.random(1 << 31), 0
print(me .. " " .. n)
for _ in io.lines() do
  n = n + 1
  print(me .. " " .. n)
end
`;

const TCL = `fconfigure stdout -buffering line
set me [expr {int(rand() * 1000000000)}]
set n 0
puts "$me $n"
while {[gets stdin line] >= 0} { incr n; puts "$me $n" }
`;

const GUILE = `(use-modules (ice-9 rdelim))
(define me (random 4294967296 (random-state-from-platform)))
(let loop ((n 0))
  (simple-format #t "~A ~A\\n" me n)
  (force-output)
  (if (not (eof-object? (read-line))) (loop (+ n 1))))
`;

const LISP = `(let ((me (random 4294967296 (make-random-state t))) (n 0))
  (loop
    (format t "~d ~d~%" me n)
    (finish-output)
    (unless (read-line *standard-input* nil) (return))
    (incf n)))
`;

const R = `me <- sample.int(.Machine$integer.max, 1)
n <- 0L
input <- file("stdin", "r")
repeat {
  cat(me, " ", n, "\\n", sep = "")
  if (length(readLines(input, 1)) == 0) break
  n <- n + 1L
}
`;

/** Beside the counter, threads that allocate: its garbage is collected all the time. */
export const JAVA = `import java.util.*;
class Count {
  static volatile byte[] garbage;
  public static void main(String[] none) {
    for (int i = 0; i < 4; i++) {
      Thread other = new Thread(() -> { while (true) { garbage = new byte[65536]; Thread.yield(); pause(); } });
      other.setDaemon(true);
      other.start();
    }
    long me = new Random().nextInt(1 << 30);
    int n = 0;
    Scanner in = new Scanner(System.in);
    System.out.println(me + " " + n);
    while (in.hasNextLine()) { in.nextLine(); System.out.println(me + " " + ++n); }
  }
  static void pause() { try { Thread.sleep(5); } catch (InterruptedException ended) { } }
}
`;

/** The number goes through a channel to another goroutine and back. */
const GO = `package main

import ("bufio"; "fmt"; "os")

func main() {
	asked, counted := make(chan bool), make(chan int)
	go func() { for n := 1; ; n++ { <-asked; counted <- n } }()
	fmt.Println(os.Getpid(), 0)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		asked <- true
		fmt.Println(os.Getpid(), <-counted)
	}
}
`;

const RUST = `use std::io::BufRead;
fn main() {
    let (ask, asked) = std::sync::mpsc::channel();
    let (count, counted) = std::sync::mpsc::channel();
    std::thread::spawn(move || { let mut n = 0; while asked.recv().is_ok() { n += 1; count.send(n).unwrap(); } });
    println!("{} {}", std::process::id(), 0);
    for _ in std::io::stdin().lock().lines() {
        ask.send(()).unwrap();
        println!("{} {}", std::process::id(), counted.recv().unwrap());
    }
}
`;

const C = `#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  char line[80];
  int *n = calloc(1, sizeof *n);
  setvbuf(stdout, NULL, _IOLBF, 0);
  do printf("%d %d\\n", getpid(), (*n)++); while (fgets(line, sizeof line, stdin));
}
`;

const CPP = `#include <condition_variable>
#include <iostream>
#include <mutex>
#include <thread>
#include <unistd.h>
int main() {
  std::mutex lock;
  std::condition_variable changed;
  int asked = 0, counted = 0;
  std::thread([&] {
    std::unique_lock<std::mutex> held(lock);
    for (;;) {
      changed.wait(held, [&] { return asked > counted; });
      counted++;
      changed.notify_all();
    }
  }).detach();
  std::string line;
  for (int n = 0; n == 0 || std::getline(std::cin, line); n++) {
    std::unique_lock<std::mutex> held(lock);
    asked = n;
    changed.notify_all();
    changed.wait(held, [&] { return counted == asked; });
    std::cout << getpid() << " " << counted << std::endl;
  }
}
`;

const ERLANG = `#!/usr/bin/env escript
main(_) -> loop(rand:uniform(1000000000), 0).
loop(Me, N) ->
  io:format("~b ~b~n", [Me, N]),
  case io:get_line("") of eof -> ok; _ -> loop(Me, N + 1) end.
`;

const ELIXIR = `defmodule Count do
  def loop(me, agent) do
    IO.puts("#{me} #{Agent.get(agent, & &1)}")
    if IO.gets("") != :eof do
      Agent.update(agent, &(&1 + 1))
      loop(me, agent)
    end
  end
end
{:ok, agent} = Agent.start_link(fn -> 0 end)
Count.loop(:rand.uniform(1_000_000_000), agent)
`;

export const BASH = `n=0
echo "$$ $n"
while read -r _; do n=$((n + 1)); echo "$$ $n"; done
`;

export const LANGUAGES: readonly Program[] = [
  counter("Python", "python3 count.py", { "count.py": PYTHON }),
  counter("Python's multiprocessing", "python3 count.py", { "count.py": MULTIPROCESSING }),
  counter("Node", "node count.cjs", { "count.cjs": NODE }),
  counter("Node with worker threads", "node count.cjs", { "count.cjs": WORKER_THREADS }),
  counter("Perl", "perl count.pl", { "count.pl": PERL }),
  counter("Ruby", "ruby count.rb", { "count.rb": RUBY }),
  counter("PHP", "php count.php", { "count.php": PHP }),
  counter("Lua", "lua5.4 count.lua", { "count.lua": LUA }),
  counter("Tcl", "tclsh count.tcl", { "count.tcl": TCL }),
  counter("Guile", "guile --no-auto-compile -s count.scm", { "count.scm": GUILE }),
  counter("Common Lisp (SBCL)", "sbcl --script count.lisp", { "count.lisp": LISP }),
  counter("R", "Rscript count.R", { "count.R": R }),
  counter("Java", "java Count.java", { "Count.java": JAVA }),
  counter("Go", "./count", { "count.go": GO }, { before: "[ -x count ] || go build -o count count.go" }),
  counter("Rust", "./count", { "count.rs": RUST }, { before: "[ -x count ] || rustc -O -o count count.rs" }),
  counter("C", "./count", { "count.c": C }, { before: "[ -x count ] || gcc -O2 -o count count.c" }),
  counter(
    "C++ with threads",
    "./count",
    { "count.cc": CPP },
    { before: "[ -x count ] || g++ -O1 -pthread -o count count.cc" },
  ),
  counter("Erlang", "escript count.escript", { "count.escript": ERLANG }),
  counter("Elixir", "elixir count.exs", { "count.exs": ELIXIR }),
  counter("bash", "bash count.sh", { "count.sh": BASH }),
];
