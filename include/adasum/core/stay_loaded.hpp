// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#if defined(__ELF__) && __has_include(<dlfcn.h>)
#include <dlfcn.h>
#endif

namespace adasum::detail {

#if defined(__ELF__) && defined(RTLD_NODELETE) && defined(RTLD_NOLOAD)
// Null in programs that are linked statically, and where dlopen is in a library of its own (-ldl) that is not linked.
[[gnu::weakref("dladdr")]] static int dladdr_if_linked(const void* address, Dl_info* found);
[[gnu::weakref("dlopen")]] static void* dlopen_if_linked(const char* path, int mode);
[[gnu::weakref("dlerror")]] static char* dlerror_if_linked();
#endif

/// Keeps the program or library that this is compiled into where it is until the process ends, also after dlclose(): for
/// whoever stores an object whose code is here in one that may outlive it. (Hidden, so that the address is not another
/// library's.)
[[gnu::visibility("hidden")]] inline void stay_loaded() noexcept {
#if defined(__ELF__) && defined(RTLD_NODELETE) && defined(RTLD_NOLOAD)
  static const bool once [[maybe_unused]] = [] {
    Dl_info here{};
    if (!dladdr_if_linked || !dlopen_if_linked || !dlerror_if_linked) return false;
    if (dladdr_if_linked(reinterpret_cast<const void*>(&stay_loaded), &here) == 0) return false;
    // A program has no such handle, and needs none; what dlerror() would then say is taken away.
    if (!dlopen_if_linked(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)) dlerror_if_linked();
    return true;
  }();
#endif
}

}  // namespace adasum::detail
