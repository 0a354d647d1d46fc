// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#define DOCTEST_CONFIG_IMPLEMENT
#include "doctest_beside_torch.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "gloo_world.hpp"

/// main() of the doctest programs that run in several processes with gloo: PROGRAM PROCESSES [doctest's arguments]. All
/// processes run the same test cases; the program fails if one of them fails. Rank 0 prints its summary, others only what
/// failed.
int main(int argc, char** argv) {
  auto& self = adasum::test::this_process();
  self.size = argc > 1 ? std::atoi(argv[1]) : 0;
  if (self.size < 1) return 2;
  char file[] = "/tmp/adasum_gloo_XXXXXX";
  close(mkstemp(file));
  // Before any thread is made, as forked processes have none but their first.
  for (self.rank = 0; self.rank < self.size; ++self.rank)
    if (fork() == 0) {
      self.store =
          c10::make_intrusive<::c10d::FileStore>(file, self.size + 1);  // one more, so that none removes the file
      std::ostringstream text;
      doctest::Context context(argc, argv);
      context.setCout(&text);
      const int status = context.run();
      if (self.rank == 0 || status != 0) std::cout << "rank " << self.rank << ":\n" << text.str() << std::flush;
      std::_Exit(status);  // gloo's threads need not end in any order
    }
  int worst = 0, status = 0;
  while (wait(&status) > 0)
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) worst = 1;
  std::remove(file);
  return worst;
}
