// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <string>

#include "core/error.hpp"
#include "core/tracing.hpp"

namespace adasum {

/// From now on, each step of the reductions of this process is written to a file of its own in the folder, which is made if
/// need be, in Chrome's trace format: an array of events with times in microseconds by the system's clock. `python -m
/// adasum.timeline FOLDER` puts those of all processes together. A step costs about 4 µs then.
/// @throws bad_input  the file cannot be made
void trace_to(const std::string& folder);

/// The same with the folder that the environment variable ADASUM_TRACE names, if it names one. The libraries for C, Fortran and
/// Python do this when they are loaded.
/// @throws bad_input  as trace_to() does
void trace_from_environment();

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <system_error>

#include "core/environment.hpp"

namespace adasum::detail {

inline constexpr const char* trace_variable = "ADASUM_TRACE";

/// Events are written one by one, without a buffer: what a process has done is there when it is killed, and once when it forks.
class chrome_trace {
 public:
  static void open(const std::string& folder) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    mkdir(folder.c_str(), 0777);
    std::string path;
    int made = -1;
    for (int number = 0; made < 0; ++number) {  // there may be one of another copy of the library
      path = joined({folder, "/adasum.", host, ".", getpid(), ".", number, ".json"});
      made = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
      if (made < 0 && errno != EEXIST)
        throw bad_input({"adasum: the trace ", path, " cannot be made: ", std::generic_category().message(errno)});
    }
    const std::string first = joined({"[\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": ", getpid(),
                                      ", \"args\": {\"name\": \"", rank(), " on ", host, "\"}},\n"});
    write(made, first.data(), first.size());
    file_ = made;  // another one stays open: a thread may be writing to it
  }
  static void begin(const char* step, std::size_t stage) noexcept {
    event("B", [&](char* text, std::size_t room) {
      return std::snprintf(text, room, ", \"name\": \"%s\", \"args\": {\"stage\": %zu}", step, stage);
    });
  }
  static void end() noexcept {
    event("E", [](char*, std::size_t) { return 0; });
  }

 private:
  /// As whoever has started the process says: torchrun, which others may have started, before them.
  static std::string rank() {
    for (const auto* const variable : {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
      const auto number = environment(variable);
      if (!number.empty() && number.find_first_not_of("0123456789") == number.npos) return joined({"rank ", number});
    }
    return joined({"process ", getpid()});
  }

  template <class More>
  static void event(const char* phase, const More& more) noexcept {
    using namespace std::chrono;
    const long long time = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
    char text[256];
    int size = std::snprintf(text, sizeof text, "{\"ph\": \"%s\", \"pid\": %d, \"tid\": %d, \"ts\": %lld.%03lld", phase,
                             static_cast<int>(getpid()), static_cast<int>(gettid()), time / 1000, time % 1000);
    size += more(text + size, sizeof text - static_cast<std::size_t>(size));
    size += std::snprintf(text + size, sizeof text - static_cast<std::size_t>(size), "},\n");
    write(file_, text, static_cast<std::size_t>(size));
  }
  /// What cannot be written is missing in the trace: no reduction fails for that.
  static void write(int file, const char* text, std::size_t size) noexcept {
    static_cast<void>(::write(file, text, size) >= 0);
  }

  static inline std::atomic<int> file_ = -1;
};

inline constexpr tracer chrome_tracer{&chrome_trace::begin, &chrome_trace::end};

}  // namespace adasum::detail

namespace adasum {

ADASUM_INLINE void trace_to(const std::string& folder) {
  detail::chrome_trace::open(folder);
  set_tracer(&detail::chrome_tracer);
}

ADASUM_INLINE void trace_from_environment() {
  const auto folder = detail::environment(detail::trace_variable);
  if (!folder.empty()) trace_to(std::string(folder));
}

}  // namespace adasum
#endif
