// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Everything that needs nothing but a C++20 compiler. MPI: <adasum/comm/mpi.hpp>.

#include "allreduce.hpp"
#include "combine.hpp"
#include "comm/self.hpp"
#include "comm/threads.hpp"
#include "core/concepts.hpp"
#include "core/error.hpp"
#include "core/gradient.hpp"
#include "core/options.hpp"
#include "core/report.hpp"
#include "core/scalar.hpp"
#include "core/segments.hpp"
#include "delta.hpp"
#include "exec/serial.hpp"
#include "pair.hpp"
#include "plan.hpp"
#include "rules/adasum.hpp"
#include "rules/mean.hpp"
#include "rules/sum.hpp"
#include "schedule/automatic.hpp"
#include "schedule/gram.hpp"
#include "schedule/recursive_doubling.hpp"
#include "schedule/recursive_halving.hpp"
#include "schedule/splitting.hpp"
#include "tree.hpp"
