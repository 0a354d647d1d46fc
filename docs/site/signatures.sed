# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Signatures as users read them (sed -z -E: a whole file). Calls take segments, a rule, a schedule and options in any order, as
# parameters A, B, C … of any type that need not be given: these are shown as one pack of arguments.
s/class A = detail::unnamed_options(,\s+class [B-E] = detail::unnamed_options)*/class... Arguments/g
s/A\&\& a = \{\}(,\s+[B-E]\&\& [b-e] = \{\})*/Arguments\&\&... arguments/g
s/detail::segments_or_length/segments_or_length/g
# Designated initialisers, which Sphinx cannot read.
s/(link inside)\{\.latency[^}]*\}/\1/
