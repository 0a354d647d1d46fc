// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cuda_runtime.h>

#include <cstdio>

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: there is no CUDA device here");
    return ADASUM_SKIPPED;
  }
  return doctest::Context(argc, argv).run();
}
