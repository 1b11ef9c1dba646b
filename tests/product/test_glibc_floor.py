"""Objects that are linked for an old C library: they ask for nothing newer, and what is defined in its stead works."""

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

pytestmark = [
    pytest.mark.no_device,
    pytest.mark.skipif(not (SCRIPTS / "glibc_floor.py").exists(), reason="the scripts of the repository are not here"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]

FLOOR = (2, 27)

# The names are declared here as a new system's headers declare them; each is in a newer glibc than the floor.
PROGRAM = """
struct mallinfo2 { unsigned long fields[10]; };
struct mallinfo2 mallinfo2(void);
unsigned arc4random(void);
extern char __libc_single_threaded;
int stat(const char *, void *), lstat(const char *, void *), fstat(int, void *), fstatat(int, const char *, void *, int);
long __isoc23_strtol(const char *, char **, int);
int __isoc23_sscanf(const char *, const char *, ...);
void *dlsym(void *, const char *);
int pthread_create(void *, void *, void *, void *);

#include <stdio.h>
#include <stdlib.h>
union status { char bytes[512]; struct { unsigned long device, inode; } start; };

int check(const char *path) {
    union status by_path, by_link, by_file, by_folder;
    FILE *file = fopen(path, "r");
    if (!file) return 1;
    if (stat(path, &by_path) || lstat(path, &by_link)) return 2;
    if (fstat(fileno(file), &by_file) || fstatat(-100, path, &by_folder, 0)) return 3;
    fclose(file);
    if (by_path.start.inode != by_link.start.inode || by_path.start.inode != by_file.start.inode) return 4;
    if (by_path.start.inode != by_folder.start.inode || stat("/no/such/file", &by_path) != -1) return 5;
    if (arc4random() == arc4random() && arc4random() == arc4random()) return 6;
    void *block = malloc(100);
    struct mallinfo2 info = mallinfo2();
    if (info.fields[7] == 0 || info.fields[7] > 1ul << 40) return 7; /* bytes in use */
    free(block);
    int number = 0;
    if (__isoc23_strtol("-12", 0, 10) != -12 || __isoc23_sscanf("34", "%d", &number) != 1 || number != 34) return 8;
    if (__libc_single_threaded) return 9;
    return dlsym(0, "pthread_create") && (void *)pthread_create ? 0 : 10;
}
"""


def test_an_object_for_an_old_c_library(tmp_path):
    sys.path.insert(0, str(SCRIPTS))
    try:
        from glibc_floor import make_linker
    finally:
        sys.path.remove(str(SCRIPTS))
    source, compiled, linked = (tmp_path / f"check.{suffix}" for suffix in ("c", "o", "so"))
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-c", "-fPIC", "-O1", "-fno-builtin", "-o", compiled, source], check=True)
    # Without the stand-ins the linker takes the newest versions of this machine's library.
    linker = make_linker(tmp_path, FLOOR)
    subprocess.run([linker, "-shared", "-o", linked, compiled], check=True)
    versions = subprocess.run(["readelf", "-VW", linked], check=True, capture_output=True, text=True).stdout
    asked = {tuple(int(part) for part in version.split(".")) for version in re.findall(r"GLIBC_([\d.]+)", versions)}
    assert asked and max(asked) <= FLOOR
    assert ctypes.CDLL(str(linked)).check(str(source).encode()) == 0


def test_what_the_old_library_lacks_makes_the_link_fail(tmp_path):
    sys.path.insert(0, str(SCRIPTS))
    try:
        from glibc_floor import make_linker
    finally:
        sys.path.remove(str(SCRIPTS))
    source, linked = tmp_path / "new.c", tmp_path / "new.so"
    source.write_text("int gettid(void); int f(void) { return gettid(); }")  # since 2.30
    compile_it = ["-shared", "-fPIC", "-Wl,-z,defs", "-o", linked, source, "-lc"]
    refused = subprocess.run([make_linker(tmp_path, FLOOR), *compile_it], capture_output=True, text=True)
    assert refused.returncode != 0 and "gettid" in refused.stderr
