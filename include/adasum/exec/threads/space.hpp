// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/space_members.hpp"
#include "../serial.hpp"
#include "../serial/blocks.hpp"
#include "../serial/instruction_set.hpp"
#include "measure.hpp"
#include "mix.hpp"

namespace adasum::detail::threads_backend {

/// How many processors the calling thread may run on: MPI binds ranks to some of a node's. At least 1.
inline std::size_t processors() {
#ifdef CPU_COUNT_S
  constexpr std::size_t sets = 8;  // 8192 processors
  cpu_set_t allowed[sets];
  if (sched_getaffinity(0, sizeof(allowed), allowed) == 0)
    return std::max<std::size_t>(1, static_cast<std::size_t>(CPU_COUNT_S(sizeof(allowed), allowed)));
#endif
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace adasum::detail::threads_backend

namespace adasum {

/// The execution space of several threads of this process: the calling one, and workers that the space keeps. For ranks
/// that have cores to spare.
///
///     adasum::threads_space exec;  // as many threads as this rank has processors
///     adasum::adasum_pair(exec, a, b, out);
///
/// Computes the same bits as serial_space with the same instructions, whatever the number of threads. Every call computes
/// before it returns. Work that is too short for several threads is done by the calling one.
///
/// Copies share the workers. These are started by the first call that needs them, inherit that thread's affinity, and end
/// with the last copy; while there is nothing to do, they look for work for some tenths of a millisecond at the most, and
/// then sleep. They never call MPI or a rule: MPI_THREAD_FUNNELED is enough.
///
/// Any number of threads may call one object, or its copies, at the same time (ranks that are threads do). A call that finds
/// the workers busy does its work on its own thread. If a child of fork() uses its parent's space, it must not be the last
/// owner, because the workers for which the destructor waits do not exist in the child.
///
/// It fulfils the contract of the concept execution_space for every scalar. Calls throw std::bad_alloc as serial_space's do,
/// and an error if a worker cannot be started; nothing has changed then.
class threads_space {
 public:
  static constexpr std::string_view name = "threads";
  /// More threads than this are refused.
  static constexpr std::size_t most_threads = 4096;

  /// As many threads as there are processors on which the calling thread may run (its affinity; where the system does not
  /// tell, std::thread::hardware_concurrency()). Ranks that are not bound to processors of their own must share them: tell
  /// each how many threads it has.
  threads_space();
  /// @param threads  the calling one included. @param kernels  what each thread computes with
  /// @throws bad_input  none, or more than most_threads
  explicit threads_space(std::size_t threads, const serial_space& kernels = serial_space());
  // Copied, also where it could be moved: none is ever without workers.
  threads_space(const threads_space&) = default;
  threads_space& operator=(const threads_space&) = default;

  /// How many threads compute, the calling one included.
  std::size_t threads() const;
  /// The instructions that each thread uses.
  instruction_set instructions() const { return serial_.instructions(); }
  /// The same number of threads; the workers may be others.
  template <std::same_as<threads_space> Space>
  friend bool operator==(const Space& a, const Space& b) {
    return a.threads() == b.threads() && a.serial_ == b.serial_;
  }

  /// Uninitialised memory on whole cache lines, owned by what is returned.
  template <scalar T>
  auto allocate(std::size_t count) const {
    return serial_.template allocate<T>(count);
  }

  /// @param bytes  of all vectors together, if the window is a part of a larger one, else 0
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram, std::size_t bytes = 0) const {
    detail::threads_backend::measure(*team_, serial_.template kernels<T>(), false, window,
                                     detail::serial::untyped(vectors), vectors.size(),
                                     bytes != 0 ? bytes : serial_space::bytes_of<T>(window, vectors.size()), gram);
  }
  /// Every product and sum in double, also those of one or two vectors of narrower elements.
  template <scalar T>
  void measure_in_double(const slice& window, std::span<const T* const> vectors, double* gram) const {
    detail::threads_backend::measure(*team_, serial_.template kernels<T>(), true, window,
                                     detail::serial::untyped(vectors), vectors.size(),
                                     serial_space::bytes_of<T>(window, vectors.size()), gram);
  }

  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    detail::threads_backend::mix(*team_, serial_.template kernels<T>(), window, detail::serial::untyped(vectors),
                                 vectors.size(), weights, out);
  }

  /// See serial_space.
  template <scalar From, scalar To>
    requires(std::same_as<From, double> || std::same_as<To, double> || std::same_as<From, To>)
  void mix_in_double(const slice& window, std::span<const From* const> vectors, const double* weights, To* out) const {
    detail::threads_backend::mix(*team_, serial_.template double_mixing<From, To>(), window,
                                 detail::serial::untyped(vectors), vectors.size(), weights, out);
  }

  /// Of one element type, or between float and a 16-bit type, rounded to nearest even.
  template <scalar From, scalar To>
    requires(detail::serial::can_copy<From, To>)
  void copy(const From* from, To* to, std::size_t count) const {
    detail::threads_backend::copy(*team_, serial_.template conversion<From, To>(), from, sizeof(From), to, sizeof(To),
                                  count);
  }

  void fence() const {}

  /// @cond internal
  friend std::string_view rounding_of(detail::own_type, const threads_space& space) {
    return to_string(space.instructions());
  }
  /// @endcond

 protected:
  detail::threads_backend::team& team() const { return *team_; }

 private:
  serial_space serial_;
  std::shared_ptr<detail::threads_backend::team> team_;
};

/// @cond internal
/// What has been measured is still in the second-level caches when it is mixed. Less than what the serial kernels
/// regard as vectors from memory, for which some of them add in another order.
template <>
inline constexpr std::size_t detail::own_round_bytes<threads_space> = std::size_t{384} << 10;

/// See core/concepts.hpp: what serial_space has. Rare, so the calling thread does it alone.
template <std::same_as<threads_space> Space>
detail::serial_double_space for_recombining(const Space& space) {
  return for_recombining(serial_space(space.instructions()));
}
/// @endcond

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include "../../core/error.hpp"
#include "team.hpp"

namespace adasum {

// Less than what the serial kernels regard as vectors from memory, for which some of them add in another order.
static_assert(!detail::serial::exceeds_cache(detail::own_round_bytes<threads_space>));

ADASUM_INLINE threads_space::threads_space() : threads_space(detail::threads_backend::processors()) {}

ADASUM_INLINE threads_space::threads_space(std::size_t threads, const serial_space& kernels) : serial_(kernels) {
  if (threads < 1 || threads > most_threads)
    throw bad_input({"adasum::threads_space: ", threads, " threads were asked for; there can be 1 to ", most_threads});
  team_ = std::make_shared<detail::threads_backend::team>(threads);
}

ADASUM_INLINE std::size_t threads_space::threads() const { return team_->all.size(); }

}  // namespace adasum
#endif
