! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
!
! The functions of libadasum (include/adasum/adasum.h) as the module `adasum` calls them. Not for programs: use adasum.
module adasum_c
  use, intrinsic :: iso_c_binding
  implicit none
  public

  type, bind(C) :: handle
    integer(c_int64_t) :: id = 0
  end type handle

  interface
    integer(c_int) function c_version() bind(C, name="adasum_version")
      import :: c_int
    end function c_version
    type(c_ptr) function c_rules() bind(C, name="adasum_rules")
      import :: c_ptr
    end function c_rules
    type(c_ptr) function c_error_name(error) bind(C, name="adasum_error_name")
      import :: c_ptr, c_int
      integer(c_int), value :: error
    end function c_error_name
    type(c_ptr) function c_last_error() bind(C, name="adasum_last_error")
      import :: c_ptr
    end function c_last_error

    integer(c_int) function c_pair(a, count_of_a, b, count_of_b, out, count, type, lengths, segments) &
        bind(C, name="adasum_fortran_pair")
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: a, b, out, lengths
      integer(c_size_t), value :: count_of_a, count_of_b, count, segments
      integer(c_int), value :: type
    end function c_pair
    integer(c_int) function c_combine(gradients, number, length, out, count, type, lengths, segments, rule, options, &
                                      report) bind(C, name="adasum_fortran_combine")
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: gradients, out, lengths, rule, options, report
      integer(c_size_t), value :: number, length, count, segments
      integer(c_int), value :: type
    end function c_combine

    integer(c_int) function c_allreduce(comm, data, count, type, lengths, segments, rule, options, report) &
        bind(C, name="adasum_fortran_allreduce")
      import :: c_int, c_ptr, c_size_t
      integer(c_int), value :: comm
      type(c_ptr), value :: data, lengths, rule, options, report
      integer(c_size_t), value :: count, segments
      integer(c_int), value :: type
    end function c_allreduce
    integer(c_int) function c_set_timeout(comm, seconds) bind(C, name="adasum_fortran_set_timeout")
      import :: c_int, c_double
      integer(c_int), value :: comm
      real(c_double), value :: seconds
    end function c_set_timeout

    integer(c_int) function c_plan_create(comm, mold, count, type, lengths, segments, rule, options, plan) &
        bind(C, name="adasum_fortran_plan_create")
      import :: c_int, c_ptr, c_size_t, handle
      integer(c_int), value :: comm
      type(c_ptr), value :: mold
      integer(c_size_t), value :: count, segments
      integer(c_int), value :: type
      type(c_ptr), value :: lengths, rule, options
      type(handle), intent(inout) :: plan
    end function c_plan_create
    integer(c_int) function c_plan_run(plan, data, count, type, report) bind(C, name="adasum_fortran_plan_run")
      import :: c_int, c_ptr, c_size_t, handle
      type(handle), value :: plan
      type(c_ptr), value :: data, report
      integer(c_size_t), value :: count
      integer(c_int), value :: type
    end function c_plan_run
    integer(c_int) function c_plan_start(plan, data, count, type, contiguous) bind(C, name="adasum_fortran_plan_start")
      import :: c_int, c_ptr, c_size_t, handle
      type(handle), value :: plan
      type(c_ptr), value :: data
      integer(c_size_t), value :: count
      integer(c_int), value :: type, contiguous
    end function c_plan_start
    integer(c_int) function c_plan_test(plan, done) bind(C, name="adasum_plan_test")
      import :: c_int, handle
      type(handle), value :: plan
      integer(c_int), intent(inout) :: done
    end function c_plan_test
    integer(c_int) function c_plan_wait(plan, report) bind(C, name="adasum_plan_wait")
      import :: c_int, c_ptr, handle
      type(handle), value :: plan
      type(c_ptr), value :: report
    end function c_plan_wait
    integer(c_int) function c_plan_buffer(plan, type, buffer) bind(C, name="adasum_fortran_plan_buffer")
      import :: c_int, c_ptr, handle
      type(handle), value :: plan
      integer(c_int), value :: type
      type(c_ptr), intent(out) :: buffer
    end function c_plan_buffer
    integer(c_int) function c_plan_free(plan) bind(C, name="adasum_plan_free")
      import :: c_int, handle
      type(handle), intent(inout) :: plan
    end function c_plan_free

    integer(c_size_t) function c_report_contributions(report) bind(C, name="adasum_report_contributions")
      import :: c_size_t, handle
      type(handle), value :: report
    end function c_report_contributions
    integer(c_size_t) function c_report_segments(report) bind(C, name="adasum_report_segments")
      import :: c_size_t, handle
      type(handle), value :: report
    end function c_report_segments
    type(c_ptr) function c_report_rule(report) bind(C, name="adasum_report_rule")
      import :: c_ptr, handle
      type(handle), value :: report
    end function c_report_rule
    type(c_ptr) function c_report_schedule(report) bind(C, name="adasum_report_schedule")
      import :: c_ptr, handle
      type(handle), value :: report
    end function c_report_schedule
    real(c_double) function c_report_orthogonality(report, segment) bind(C, name="adasum_report_orthogonality")
      import :: c_double, c_size_t, handle
      type(handle), value :: report
      integer(c_size_t), value :: segment
    end function c_report_orthogonality
    real(c_double) function c_report_norm(report, contribution, segment) bind(C, name="adasum_report_norm")
      import :: c_double, c_size_t, handle
      type(handle), value :: report
      integer(c_size_t), value :: contribution, segment
    end function c_report_norm
    real(c_double) function c_report_weight(report, contribution, segment) bind(C, name="adasum_report_weight")
      import :: c_double, c_size_t, handle
      type(handle), value :: report
      integer(c_size_t), value :: contribution, segment
    end function c_report_weight
    real(c_double) function c_report_result_norm(report, segment) bind(C, name="adasum_report_result_norm")
      import :: c_double, c_size_t, handle
      type(handle), value :: report
      integer(c_size_t), value :: segment
    end function c_report_result_norm
    integer(c_int) function c_report_finite(report) bind(C, name="adasum_report_finite")
      import :: c_int, handle
      type(handle), value :: report
    end function c_report_finite
    integer(c_size_t) function c_report_excluded(report, ranks, room) bind(C, name="adasum_report_excluded")
      import :: c_size_t, c_int, handle
      type(handle), value :: report
      integer(c_int), intent(inout) :: ranks(*)
      integer(c_size_t), value :: room
    end function c_report_excluded
    integer(c_size_t) function c_report_json(report, step, text, room) bind(C, name="adasum_report_json")
      import :: c_size_t, c_int64_t, c_ptr, handle
      type(handle), value :: report
      integer(c_int64_t), value :: step
      type(c_ptr), value :: text
      integer(c_size_t), value :: room
    end function c_report_json
    integer(c_int) function c_report_free(report) bind(C, name="adasum_report_free")
      import :: c_int, handle
      type(handle), intent(inout) :: report
    end function c_report_free

    integer(c_size_t) function c_strlen(text) bind(C, name="strlen")
      import :: c_size_t, c_ptr
      type(c_ptr), value :: text
    end function c_strlen
  end interface

contains

  ! A text of C's.
  function text_of(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(kind=c_char), pointer :: characters(:)
    integer :: i
    call c_f_pointer(address, characters, [c_strlen(address)])
    allocate (character(len=size(characters)) :: text)
    do i = 1, size(characters)
      text(i:i) = characters(i)
    end do
  end function text_of

  ! A text for C, which `kept` holds; null if it is absent. Blanks at the end, which fill up Fortran's variables, are left out.
  subroutine for_c(text, kept, address)
    character(*), intent(in), optional :: text
    character(kind=c_char), allocatable, target, intent(out) :: kept(:)
    type(c_ptr), intent(out) :: address
    integer :: i
    address = c_null_ptr
    if (.not. present(text)) return
    allocate (kept(len_trim(text) + 1))
    do i = 1, len_trim(text)
      kept(i) = text(i:i)
    end do
    kept(size(kept)) = c_null_char
    address = c_loc(kept)
  end subroutine for_c

end module adasum_c
