template <typename T> T helper(const device T* x) { return x[0]; }
template <typename T, int N, bool B>
[[kernel]] void custom_kernel_rms_dx__float16_t_3_1_float16_t_bfloat16_tc_int32_t_floats_float16_t_float(
  const device float16_t* x [[buffer(0)]],
  const constant bfloat16_t* w [[buffer(1)]],
  const device int32_t* dims [[buffer(2)]],
  const constant float& s0 [[buffer(3)]],
  device float16_t* dx [[buffer(4)]],
  device float* p [[buffer(5)]],
  uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
  uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]]) {
  uint row = threadgroup_position_in_grid.x; uint lid = thread_position_in_threadgroup.x;
  threadgroup float buf[32];
  dx[row] = x[row]*T(s0);

}

template [[host_name("custom_kernel_rms_dx__float16_t_3_1_float16_t_bfloat16_tc_int32_t_floats_float16_t_float")]] [[kernel]] decltype(custom_kernel_rms_dx__float16_t_3_1_float16_t_bfloat16_tc_int32_t_floats_float16_t_float<float16_t, 3, 1>) custom_kernel_rms_dx__float16_t_3_1_float16_t_bfloat16_tc_int32_t_floats_float16_t_float<float16_t, 3, 1>;
