// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Beside macros of system headers, where these are installed, and of libraries and programs. (Macros with a name of the standard
// library's, such as min, break that first.)
#include <adasum/core/config.hpp>

#include <complex.h>
#include <termios.h>
#if __has_include(<mpi.h>)
#include <mpi.h>
#endif
#if __has_include(<sys/param.h>) && __has_include(<sys/sysmacros.h>)
#include <sys/param.h>
#include <sys/sysmacros.h>
#endif
#if __has_include(<curses.h>) && __has_include(<term.h>)
#include <curses.h>
#include <term.h>
#endif
#if __has_include(<X11/Xlib.h>) && __has_include(<X11/Xutil.h>)
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#endif

// clang-format off
// curses.h, term.h
#undef timeout
#undef columns
#undef lines
#undef tab
#define timeout(delay) wtimeout(stdscr, (delay))
#define columns CUR Numbers[0]
#define lines CUR Numbers[2]
#define tab CUR Strings[134]
// Those of Windows, which others copy
#define near
#define far
#define small char
#define interface struct
#define IN
#define OUT
#define CONST const
#define VOID void
#undef ERROR
#define ERROR 0
// Qt, Objective-C, X11
#define signals public
#define slots
#define emit
#define foreach Q_FOREACH
#define forever for (;;)
#define nil 0
#define YES 1
#define NO 0
#undef None
#undef Bool
#undef Status
#undef Success
#undef True
#undef False
#define None 0L
#define Bool int
#define Status int
#define Success 0
#define True 1
#define False 0
// Logging, assertions, tests
#define CHECK(what) check_of_program(what)
#define LOG(what) log_of_program(what)
#define ASSERT(what) check_of_program(what)
#define VERIFY(what) check_of_program(what)
#define REQUIRE(what) check_of_program(what)
#define FAIL(what) check_of_program(what)
#define INFO(what) log_of_program(what)
#define DEBUG 1
// Numbers
#define PI 3.14
#define N 1
#define M 1
#define K 1
#define P 1
#define X 1
#define Y 1
#define F(text) text
#undef I
#define I 1
#undef OK
#define OK 1
#undef TRUE
#define TRUE 1
#undef FALSE
#define FALSE 0
#undef Min
#define Min(a, b) ((a) < (b) ? (a) : (b))
#define Max(a, b) ((a) < (b) ? (b) : (a))
#define Abs(a) ((a) < 0 ? -(a) : (a))
// clang-format on

#include <adasum/adasum.hpp>
#include <adasum/machine_file.hpp>
#include <adasum/rules/named.hpp>
#include <adasum/testing.hpp>
#if __has_include(<mpi.h>)
#include <adasum/mpi.hpp>
#endif
