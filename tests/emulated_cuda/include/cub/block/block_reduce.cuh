// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../cuda_runtime.h"

namespace cub {

/// Thread 0 adds what the others have put down. Not in the order of the real one.
template <class T, int Threads>
class BlockReduce {
 public:
  struct TempStorage {
    T of_thread[Threads];
  };
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  template <class Operation>
  T Reduce(const T& mine, Operation operation) {
    storage_.of_thread[threadIdx.x] = mine;
    __syncthreads();
    T total = mine;
    if (threadIdx.x == 0)
      for (int i = 1; i < Threads; ++i) total = operation(total, storage_.of_thread[i]);
    return total;
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
