// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>

/// The threads of one block: each runs until it waits, then the next.
namespace emulated_cuda::fibers {

/// For whom a thread waits.
enum class place { nobody, block, grid };

/// Runs `count` threads on the calling thread of the operating system. Where all of them wait for the same, calls
/// reached(place) and lets them go on. Ends the program if they wait for different things.
void run(unsigned count, const std::function<void(unsigned)>& enter, const std::function<void()>& thread,
         const std::function<void(place)>& reached);

/// Called by a thread.
void wait(place);

}  // namespace emulated_cuda::fibers
