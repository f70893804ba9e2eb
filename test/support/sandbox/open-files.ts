/** Changes to files that programs have open: for each, a process with the files open, and what it must see afterwards. */

export interface OpenFiles {
  /** Completes "a file that …". */
  readonly what: string;
  /** Python that opens and changes files in an empty directory, as root. */
  readonly before: string;
  /** Python that is true when everything is as before. */
  readonly holds: string;
  /**
   * The same Python for a copy, where it differs: files in a layer below keep no hard links for a program that writes to
   * them.
   */
  readonly holdsInCopy?: string;
}

export const OPEN_FILES: readonly OpenFiles[] = [
  {
    what: "an editor replaced: written beside, renamed over",
    before: `put('f', 'old'); f = open('f'); put('f.new', 'new'); os.rename('f.new', 'f')`,
    holds: `f.read() == 'old' and get('f') == 'new'`,
  },
  {
    what: "vim replaced: renamed to a backup, written again, the backup removed, the swap file open",
    before: `
put('f', 'old'); f = open('f'); swap = open('.f.swp', 'w+'); swap.write('swap'); swap.flush()
os.rename('f', 'f~'); put('f', 'new'); os.unlink('f~')`,
    holds: `f.read() == 'old' and get('f') == 'new' and get('.f.swp') == 'swap'`,
  },
  {
    what: "was deleted",
    before: `f = open('f', 'w+'); f.write('text'); f.flush(); os.unlink('f')`,
    holds: `f.seek(0) == 0 and f.read() == 'text' and not os.path.exists('f')`,
  },
  {
    what: "was deleted and is open three times",
    before: `put('f', 'text'); fs = [open('f'), open('f'), open('f', 'r+')]; os.unlink('f')`,
    holds: `[one.read() for one in fs] == ['text'] * 3 and fs[2].write('more') == 4 and fs[2].flush() is None and fs[0].read() == 'more'`,
  },
  {
    what: "was deleted and made again with another size",
    before: `put('f', 'text'); f = open('f'); os.unlink('f'); put('f', 'another text')`,
    holds: `f.read() == 'text' and get('f') == 'another text'`,
  },
  {
    what: "was deleted, a directory in its place",
    before: `put('f', 'text'); f = open('f'); os.unlink('f'); os.mkdir('f'); put('f/g', 'inner')`,
    holds: `f.read() == 'text' and get('f/g') == 'inner'`,
  },
  {
    what: "was deleted with its directory",
    before: `os.mkdir('d'); put('d/f', 'text'); f = open('d/f'); os.unlink('d/f'); os.rmdir('d')`,
    holds: `f.read() == 'text' and not os.path.exists('d')`,
  },
  {
    what: "was deleted with its directory, which was made again",
    before: `
os.mkdir('d'); put('d/f', 'text'); f = open('d/f'); os.unlink('d/f'); os.rmdir('d'); os.mkdir('d'); put('d/f', 'new')`,
    holds: `f.read() == 'text' and get('d/f') == 'new'`,
  },
  {
    what: "is in a directory that was renamed",
    before: `os.mkdir('d'); put('d/f', 'text'); f = open('d/f'); os.rename('d', 'e')`,
    holds: `f.read() == 'text' and get('e/f') == 'text'`,
  },
  {
    what: "logrotate renamed, its writer still open",
    before: `log = open('log', 'a'); log.write('one'); log.flush(); os.rename('log', 'log.1'); put('log', '')`,
    holds: `log.write('two') == 3 and log.flush() is None and get('log.1') == 'onetwo' and get('log') == ''`,
  },
  {
    what: "logrotate renamed, compressed and deleted, its writer still open",
    before: `
log = open('log', 'a'); log.write('one'); log.flush(); os.rename('log', 'log.1'); put('log', '')
put('log.1.gz', 'packed'); os.unlink('log.1')`,
    holds: `log.write('two') == 3 and log.flush() is None and os.fstat(log.fileno()).st_size == 6 and get('log') == ''`,
  },
  {
    what: "logrotate copied and truncated",
    before: `
log = open('log', 'a'); log.write('one'); log.flush(); put('log.1', get('log')); os.truncate('log', 0)`,
    holds: `log.write('two') == 3 and log.flush() is None and get('log') == 'two' and get('log.1') == 'one'`,
  },
  {
    what: "a package manager replaced while it is mapped",
    before: `
import mmap
put('lib', 'x' * 8192); f = open('lib'); m = mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ); f.close()
put('lib.dpkg-new', 'y' * 4096); os.rename('lib.dpkg-new', 'lib')`,
    holds: `m[:] == b'x' * 8192 and get('lib') == 'y' * 4096`,
  },
  {
    what: "was truncated while it is mapped",
    before: `
import mmap
put('data', 'x' * 8192); f = open('data', 'r+'); m = mmap.mmap(f.fileno(), 0); os.truncate('data', 4096)`,
    holds: `m[:4096] == b'x' * 4096`,
  },
  {
    what: "is a program that runs and was replaced",
    before: `
import shutil, subprocess
shutil.copy('/bin/sleep', 'prog'); child = subprocess.Popen(['./prog', '600'], stdin=-3, stdout=-3, stderr=-3)
shutil.copy('/bin/true', 'prog.dpkg-new'); os.rename('prog.dpkg-new', 'prog')`,
    holds: `child.poll() is None and subprocess.run(['./prog']).returncode == 0`,
  },
  {
    what: "is of the image and was deleted",
    before: `f = open('/usr/share/common-licenses/BSD'); os.unlink('/usr/share/common-licenses/BSD')`,
    holds: `'Regents' in f.read() and not os.path.exists('/usr/share/common-licenses/BSD')`,
  },
  {
    what: "is of the image and a package manager replaced",
    before: `
f = open('/usr/share/common-licenses/GPL-3'); put('/usr/share/common-licenses/GPL-3.dpkg-new', 'new')
os.rename('/usr/share/common-licenses/GPL-3.dpkg-new', '/usr/share/common-licenses/GPL-3')`,
    holds: `'GENERAL PUBLIC' in f.read() and get('/usr/share/common-licenses/GPL-3') == 'new'`,
  },
  {
    what: "is of the image and was written by another",
    before: `
f = open('/etc/issue'); w = open('/etc/issue', 'a'); w.write('more'); w.flush()`,
    holds: `len(f.read()) > 0 and get('/etc/issue').endswith('more')`,
  },
  {
    what: "is in shared memory and was deleted",
    before: `f = open('/dev/shm/f', 'w+'); f.write('text'); f.flush(); os.unlink('/dev/shm/f')`,
    holds: `f.seek(0) == 0 and f.read() == 'text'`,
  },
  {
    what: "never had a name",
    before: `
f = open(os.open('.', os.O_TMPFILE | os.O_RDWR), 'w+'); f.write('text'); f.flush()
m = open(os.memfd_create('m'), 'w+'); m.write('memory'); m.flush()`,
    holds: `f.seek(0) == 0 and f.read() == 'text' and m.seek(0) == 0 and m.read() == 'memory'`,
  },
  {
    what: "is a pipe with a name, deleted while both ends are open",
    before: `os.mkfifo('p'); p = os.open('p', os.O_RDWR); os.write(p, b'text'); os.unlink('p')`,
    holds: `os.read(p, 10) == b'text'`,
  },
  {
    what: "is a socket that listens and was deleted",
    before: `import socket; s = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen(); os.unlink('s')`,
    holds: `s.getsockname() == 's' or s.getsockname().endswith('/s')`,
  },
  {
    what: "was opened through a link that is gone",
    before: `put('f', 'text'); os.symlink('f', 'l'); f = open('l'); os.unlink('l')`,
    holds: `f.read() == 'text'`,
  },
  {
    what: "has a hard link more and was deleted",
    before: `put('a', 'text'); os.link('a', 'b'); f = open('a', 'r+'); os.unlink('a')`,
    holds: `f.read() == 'text' and f.write('more') == 4 and f.flush() is None and get('b') == 'textmore' and names() == ['b']`,
    holdsInCopy: `f.read() == 'text' and get('b') == 'text' and names() == ['b']`,
  },
  {
    what: "an editor replaced, with a hard link as its backup",
    before: `put('f', 'old'); f = open('f'); os.link('f', 'f~'); put('f.new', 'new'); os.rename('f.new', 'f')`,
    holds: `f.read() == 'old' and get('f') == 'new' and same(f, 'f~') and names() == ['f', 'f~']`,
    holdsInCopy: `f.read() == 'old' and get('f') == 'new' and get('f~') == 'old' and names() == ['f', 'f~']`,
  },
  {
    what: "is mapped, has a hard link more and was deleted with its directory",
    before: `
import mmap
os.mkdir('d'); put('d/f', 'x' * 8192); os.link('d/f', 'g'); f = open('d/f', 'r+'); m = mmap.mmap(f.fileno(), 0); f.close()
os.unlink('d/f'); os.rmdir('d')`,
    holds: `m[:] == b'x' * 8192 and m.write(b'y') == 1 and m.flush() is None and get('g')[0] == 'y' and names() == ['g']`,
    holdsInCopy: `m[:] == b'x' * 8192 and get('g') == 'x' * 8192 and names() == ['g']`,
  },
  {
    what: "is in shared memory, has a hard link more and was deleted",
    before: `put('/dev/shm/a', 'text'); os.link('/dev/shm/a', '/dev/shm/b'); f = open('/dev/shm/a'); os.unlink('/dev/shm/a')`,
    holds: `f.read() == 'text' and same(f, '/dev/shm/b') and not [one for one in names('/dev/shm') if one.startswith('link_remap')]`,
  },
  {
    what: "is of the image, has a hard link more and was deleted",
    before: `
os.link('/usr/share/common-licenses/Artistic', 'b'); f = open('/usr/share/common-licenses/Artistic')
os.unlink('/usr/share/common-licenses/Artistic')`,
    holds: `'Artistic' in f.read() and same(f, 'b') and names() == ['b']`,
    holdsInCopy: `'Artistic' in f.read() and 'Artistic' in get('b') and names() == ['b']`,
  },
  {
    what: "is the working directory, deleted",
    before: `os.mkdir('w'); os.chdir('w'); os.rmdir('../w')`,
    holds: `not os.path.exists('../w')`,
  },
];

/** An open database. Its connection compares the file's inode number, which is another one on a copy's disk. */
export const DATABASE: OpenFiles = {
  what: "is a database of SQLite's",
  before: `
import sqlite3
db = sqlite3.connect('db', isolation_level=None); db.execute('create table t (a)'); db.execute('insert into t values (1)')`,
  holds: `db.execute('insert into t values (2)') is not None and db.execute('select count(*) from t').fetchone() == (2,)`,
};

/** In a copy the same connection may only read, but a new connection writes. */
export const DATABASE_IN_COPY = `
import sqlite3
print(sqlite3.connect('/srv/open/database/db').execute('insert into t values (3)').rowcount)`;

/**
 * The process, in `/srv/open/NAME`: it does its changes and writes `ready`. When `/tmp/ask` appears, it writes what it sees
 * to `answer`; in a copy, `/tmp/ask` says `copy`.
 */
export function holder({ before, holds, holdsInCopy = holds }: OpenFiles, name: string): string {
  return `
import os, time
def put(path, text):
    with open(path, 'w') as one: one.write(text)
def get(path):
    with open(path) as one: return one.read()
def tell(name, text):
    put('/srv/open/${name}.' + name + '.new', text)
    os.rename('/srv/open/${name}.' + name + '.new', '/srv/open/${name}.' + name)
os.makedirs('/srv/open/${name}'); os.chdir('/srv/open/${name}')
${before}
def same(file, path): return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
def names(path='.'): return sorted(os.listdir(path))
def look():
    try: return str((${holdsInCopy}) if get('/tmp/ask') == 'copy' else (${holds}))
    except Exception as error: return repr(error)
tell('ready', 'ready')
while not os.path.exists('/tmp/ask'): time.sleep(0.05)
tell('answer', look())
time.sleep(600)
`;
}
