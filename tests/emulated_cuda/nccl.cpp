// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <nccl.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime.hpp"

namespace emulated_cuda {

struct message {
  const void* bytes;
  std::size_t size;
  char* taken;
};

/// What the ranks of one communicator share.
struct nccl_group {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<message>> on_the_way;  // by sender and receiver
};

struct nccl_rank {
  std::shared_ptr<nccl_group> group;
  int rank, size;
};

namespace {

struct operation {
  bool sends;
  void* bytes;
  std::size_t size;
  int peer;
};

/// The messages of one rank in one group of calls: all together, as soon as the stream comes to them.
void run(const nccl_rank& me, const std::vector<operation>& operations) {
  auto& group = *me.group;
  std::vector<char> taken(operations.size(), 0);
  std::unique_lock lock(group.mutex);
  for (std::size_t i = 0; i < operations.size(); ++i)
    if (operations[i].sends)
      group.on_the_way[{me.rank, operations[i].peer}].push_back({operations[i].bytes, operations[i].size, &taken[i]});
  group.changed.notify_all();
  for (const auto& one : operations) {
    if (one.sends) continue;
    auto& queue = group.on_the_way[{one.peer, me.rank}];
    group.changed.wait(lock, [&] { return !queue.empty(); });
    const auto from = queue.front();
    queue.pop_front();
    if (from.size != one.size) {
      std::fprintf(stderr, "emulated NCCL: %zu bytes are sent where %zu are received\n", from.size, one.size);
      std::abort();
    }
    std::memcpy(one.bytes, from.bytes, one.size);
    *from.taken = 1;
    group.changed.notify_all();
  }
  for (std::size_t i = 0; i < operations.size(); ++i)
    group.changed.wait(lock, [&] { return !operations[i].sends || taken[i]; });
}

thread_local int depth = 0;
thread_local std::map<std::pair<ncclComm_t, cudaStream_t>, std::vector<operation>> collected;

ncclResult_t add(ncclComm_t comm, cudaStream_t stream, operation one) {
  if (one.peer < 0 || one.peer >= comm->size) return ncclInvalidArgument;
  ncclGroupStart();
  collected[{comm, stream}].push_back(one);
  return ncclGroupEnd();
}

}  // namespace
}  // namespace emulated_cuda

using namespace emulated_cuda;

const char* ncclGetErrorString(ncclResult_t code) { return code == ncclSuccess ? "no error" : "invalid argument"; }

ncclResult_t ncclCommInitAll(ncclComm_t* made, int count, const int*) {
  const auto group = std::make_shared<nccl_group>();
  for (int r = 0; r < count; ++r) made[r] = new nccl_rank{group, r, count};
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return delete comm, ncclSuccess; }
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) { return *rank = comm->rank, ncclSuccess; }
ncclResult_t ncclCommCount(ncclComm_t comm, int* size) { return *size = comm->size, ncclSuccess; }

ncclResult_t ncclGroupStart() { return ++depth, ncclSuccess; }
ncclResult_t ncclGroupEnd() {
  if (--depth > 0) return ncclSuccess;
  for (auto& [on, operations] : collected)
    enqueue(on.second, [me = *on.first, operations = std::move(operations)] { run(me, operations); });
  collected.clear();
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* bytes, std::size_t size, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream, {true, const_cast<void*>(bytes), size, peer});
}
ncclResult_t ncclRecv(void* bytes, std::size_t size, ncclDataType_t, int peer, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {false, bytes, size, peer});
}
