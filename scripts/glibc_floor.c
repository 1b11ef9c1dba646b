/* Functions that the static libraries of a new system expect of its C library and that glibc 2.27 does not have, in terms of those
   that it has. They are hidden: an object that is linked with them uses them itself and offers them to nobody, and the linker drops
   those that nothing refers to. Declarations are written out, for the system's headers have newer ideas of the same names. */

#include <stdarg.h>
#include <stddef.h>

#define OWN __attribute__((visibility("hidden")))

/* The layout of `struct stat` that the headers describe, as a number that the functions below take. */
#if defined(__x86_64__)
enum { STAT_LAYOUT = 1 };
#elif defined(__aarch64__)
enum { STAT_LAYOUT = 0 };
#else
#error "the number of this architecture's struct stat is not known here"
#endif

/* glibc 2.33: before, the headers called these. The 64-bit variants are the same on 64-bit systems. */
struct stat;
int __xstat(int layout, const char *path, struct stat *result);
int __lxstat(int layout, const char *path, struct stat *result);
int __fxstat(int layout, int file, struct stat *result);
int __fxstatat(int layout, int folder, const char *path, struct stat *result, int flags);
OWN int stat(const char *path, struct stat *result) { return __xstat(STAT_LAYOUT, path, result); }
OWN int stat64(const char *path, struct stat *result) { return __xstat(STAT_LAYOUT, path, result); }
OWN int lstat(const char *path, struct stat *result) { return __lxstat(STAT_LAYOUT, path, result); }
OWN int lstat64(const char *path, struct stat *result) { return __lxstat(STAT_LAYOUT, path, result); }
OWN int fstat(int file, struct stat *result) { return __fxstat(STAT_LAYOUT, file, result); }
OWN int fstat64(int file, struct stat *result) { return __fxstat(STAT_LAYOUT, file, result); }
OWN int fstatat(int folder, const char *path, struct stat *result, int flags) {
    return __fxstatat(STAT_LAYOUT, folder, path, result, flags);
}
OWN int fstatat64(int folder, const char *path, struct stat *result, int flags) {
    return __fxstatat(STAT_LAYOUT, folder, path, result, flags);
}

/* glibc 2.32: whether atomics may be left out. Several threads is the answer that is always right. */
OWN char __libc_single_threaded = 0;

/* glibc 2.33: `mallinfo` with room for large numbers. */
struct mallinfo { int fields[10]; };
struct mallinfo2 { size_t fields[10]; };
struct mallinfo mallinfo(void);
OWN struct mallinfo2 mallinfo2(void) {
    struct mallinfo narrow = mallinfo();
    struct mallinfo2 wide;
    for (int i = 0; i < 10; i++) {
        wide.fields[i] = (unsigned)narrow.fields[i];
    }
    return wide;
}

/* glibc 2.36. */
int getentropy(void *buffer, size_t length);
void abort(void);
OWN unsigned arc4random(void) {
    unsigned number;
    if (getentropy(&number, sizeof number) != 0) {
        abort();
    }
    return number;
}

/* glibc 2.38: these also read binary numbers, "0b1", which no C++ library of before asked for. */
long strtol(const char *text, char **end, int radix);
unsigned long strtoul(const char *text, char **end, int radix);
long long strtoll(const char *text, char **end, int radix);
unsigned long long strtoull(const char *text, char **end, int radix);
int vsscanf(const char *text, const char *format, va_list results);
OWN long __isoc23_strtol(const char *text, char **end, int radix) { return strtol(text, end, radix); }
OWN unsigned long __isoc23_strtoul(const char *text, char **end, int radix) { return strtoul(text, end, radix); }
OWN long long __isoc23_strtoll(const char *text, char **end, int radix) { return strtoll(text, end, radix); }
OWN unsigned long long __isoc23_strtoull(const char *text, char **end, int radix) { return strtoull(text, end, radix); }
OWN int __isoc23_sscanf(const char *text, const char *format, ...) {
    va_list results;
    va_start(results, format);
    int count = vsscanf(text, format, results);
    va_end(results);
    return count;
}
