// Makes one call of the C library fail in programs that it is preloaded into. PIPELAB_FAIL=write:3
// is the third write. PIPELAB_FAILED names a file that is made when it has come to that. glibc's
// look-up of a user's name, which glog asks for, ends the program without memory: it keeps its own.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> calls{0};
thread_local bool spared = false;

// Takes no memory, and no call that it makes fail.
bool Fails(const char* name) {
  const char* asked = getenv("PIPELAB_FAIL");
  const size_t size = strlen(name);
  if (spared || asked == nullptr || strncmp(asked, name, size) != 0 || asked[size] != ':')
    return false;
  if (++calls != atol(asked + size + 1)) return false;
  const char* mark = getenv("PIPELAB_FAILED");
  if (mark != nullptr) close(static_cast<int>(syscall(SYS_openat, AT_FDCWD, mark, O_CREAT, 0600)));
  return true;
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int WithErrno(int error) {
  errno = error;
  return -1;
}

}  // namespace

extern "C" {

void* __libc_malloc(size_t size);

void* malloc(size_t size) {
  if (!Fails("malloc")) return __libc_malloc(size);
  errno = ENOMEM;
  return nullptr;
}

ssize_t write(int file, const void* data, size_t size) {
  static auto* const next = Next<ssize_t(int, const void*, size_t)>("write");
  return Fails("write") ? WithErrno(ENOSPC) : next(file, data, size);
}

int fsync(int file) {
  static auto* const next = Next<int(int)>("fsync");
  return Fails("fsync") ? WithErrno(EIO) : next(file);
}

int rename(const char* from, const char* to) {
  static auto* const next = Next<int(const char*, const char*)>("rename");
  return Fails("rename") ? WithErrno(EIO) : next(from, to);
}

int mkdir(const char* path, mode_t mode) {
  static auto* const next = Next<int(const char*, mode_t)>("mkdir");
  return Fails("mkdir") ? WithErrno(ENOSPC) : next(path, mode);
}

int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  static auto* const next = Next<int(const char*, int, ...)>("open64");
  return Fails("open") ? WithErrno(EMFILE) : next(path, flags, mode);
}

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  static auto* const next = Next<int(const char*, int, ...)>("open");
  return Fails("open") ? WithErrno(EMFILE) : next(path, flags, mode);
}

passwd* getpwuid(uid_t user) {
  static auto* const next = Next<passwd*(uid_t)>("getpwuid");
  spared = true;
  passwd* const found = next(user);
  spared = false;
  return found;
}

int getpwuid_r(uid_t user, passwd* entry, char* text, size_t size, passwd** found) {
  static auto* const next = Next<int(uid_t, passwd*, char*, size_t, passwd**)>("getpwuid_r");
  spared = true;
  const int error = next(user, entry, text, size, found);
  spared = false;
  return error;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  static auto* const next =
      Next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return Fails("pthread_create") ? EAGAIN : next(thread, attributes, start, argument);
}

}  // extern "C"
