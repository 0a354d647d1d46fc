// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/communicators/nccl.hpp>
#include <adasum/core/options.hpp>
#include <adasum/exec/cuda.hpp>

#include <cstddef>
#include <vector>

#include "support/device.hpp"
#include "support/ranks.hpp"

/// Ranks of NCCL that are threads, each with a stream of its own.
namespace adasum::test {

/// One communicator for each of so many ranks.
class nccl_group {
 public:
  explicit nccl_group(int size) : comms_(static_cast<std::size_t>(size)) {
    ncclCommInitAll(comms_.data(), size, nullptr);
  }
  ~nccl_group() {
    for (const auto comm : comms_) ncclCommDestroy(comm);
  }
  std::vector<nccl_communicator> ranks() const { return {comms_.begin(), comms_.end()}; }
  ncclComm_t operator[](std::size_t r) const { return comms_[r]; }

 private:
  std::vector<ncclComm_t> comms_;
};

template <class Function>
auto on_nccl(int size, const Function& function) {
  const nccl_group group(size);
  return on_each(group.ranks(), [&](const nccl_communicator& comm) {
    const stream queue;
    return function(comm, cuda_space(queue));
  });
}

inline options checked(bool check) {
  options choices;
  choices.check_agreement = check;
  return choices;
}

}  // namespace adasum::test
