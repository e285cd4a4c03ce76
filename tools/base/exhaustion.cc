#include "tools/base/exhaustion.h"

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

namespace pipelab {
namespace {

void NoMemory() {
  EndWithout("memory", "the system gives no more; smaller sizes, or more memory, would do");
}

[[noreturn]] void OnTerminate() {
  try {
    if (std::current_exception() != nullptr) std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    NoMemory();
  } catch (const std::length_error& e) {
    EndWithout("memory", "a size is beyond any memory");
  } catch (const std::system_error& e) {
    if (e.code() == std::errc::resource_unavailable_try_again) {
      EndWithout("threads",
                 "the system starts no more; fewer devices, or a higher limit, would do");
    }
  } catch (...) {  // a fault of the program
  }
  std::abort();
}

}  // namespace

void HandleExhaustion() {
  std::set_new_handler(&NoMemory);
  std::set_terminate(&OnTerminate);
}

void EndWithout(absl::string_view what, absl::string_view detail) {
  static std::atomic_flag ends = ATOMIC_FLAG_INIT;
  while (ends.test_and_set()) pause();  // another thread says it
  const absl::string_view texts[] = {"out of ", what, ": ", detail, "\n"};
  iovec parts[5];
  for (int i = 0; i < 5; ++i) {
    parts[i] = {const_cast<char*>(texts[i].data()), texts[i].size()};
  }
  const ssize_t written = writev(STDERR_FILENO, parts, 5);
  static_cast<void>(written);  // nobody is left to tell of an error
  _exit(1);
}

}  // namespace pipelab
