// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The part of NCCL that this library uses, among threads of one process. A message whose sides differ in size ends the
/// program.

#include "cuda_runtime.h"

enum ncclResult_t { ncclSuccess = 0, ncclInvalidArgument = 4 };
enum ncclDataType_t { ncclUint8 = 1 };
namespace emulated_cuda {
struct nccl_rank;
}
using ncclComm_t = emulated_cuda::nccl_rank*;

const char* ncclGetErrorString(ncclResult_t);
ncclResult_t ncclCommInitAll(ncclComm_t*, int count, const int* devices);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclCommUserRank(ncclComm_t, int*);
ncclResult_t ncclCommCount(ncclComm_t, int*);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void*, std::size_t, ncclDataType_t, int peer, ncclComm_t, cudaStream_t);
ncclResult_t ncclRecv(void*, std::size_t, ncclDataType_t, int peer, ncclComm_t, cudaStream_t);
