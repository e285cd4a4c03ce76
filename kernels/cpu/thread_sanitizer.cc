// What ThreadSanitizer is not to report: oneDNN is not built with it, so that its own locks and
// atomics are not seen and what they protect looks like a race.
#if defined(__SANITIZE_THREAD__)

extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libdnnl.so\n"; }

#endif
