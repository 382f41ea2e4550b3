// Declarations of the names of CUDA and of MLX's prelude that the library uses. With them clang's CUDA front end checks
// a text on a machine without CUDA and without a GPU.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;

struct uint3 {
  unsigned x, y, z;
};
extern const __device__ uint3 threadIdx, blockIdx, blockDim, gridDim;

__device__ void* memcpy(void*, const void*, size_t);
__device__ void __syncthreads();
__device__ void __syncwarp(unsigned);
__device__ unsigned __activemask();
__device__ unsigned __shfl_sync(unsigned, unsigned, int, int = 32);
__device__ unsigned __shfl_xor_sync(unsigned, unsigned, int, int = 32);
__device__ unsigned __ballot_sync(unsigned, int);
__device__ void __threadfence();
__device__ void __threadfence_block();
__device__ int __ffs(int);
__device__ int __ffsll(long long);
__device__ int __popcll(unsigned long long);
__device__ int __clzll(long long);
__device__ unsigned long long __umul64hi(unsigned long long, unsigned long long);
__device__ long long __mul64hi(long long, long long);

struct __half {
  unsigned short bits;
};
struct __nv_bfloat16 {
  unsigned short bits;
};
__device__ float __half2float(__half);
__device__ __half __float2half_rn(float);
__device__ __half __ushort_as_half(unsigned short);
__device__ unsigned short __half_as_ushort(__half);
__device__ __nv_bfloat16 __float2bfloat16_rn(float);
__device__ unsigned short __bfloat16_as_ushort(__nv_bfloat16);

#define ONE(NAME) __device__ float NAME(float);
ONE(acosf)
ONE(acoshf) ONE(asinf) ONE(asinhf) ONE(atanf) ONE(atanhf) ONE(cosf) ONE(coshf) ONE(sqrtf) ONE(sinf) ONE(sinhf) ONE(tanf)
    ONE(ceilf) ONE(floorf) ONE(truncf) ONE(rintf) ONE(roundf) ONE(fabsf) ONE(expf) ONE(__expf) ONE(exp2f) ONE(exp10f)
        ONE(logf) ONE(log2f) ONE(log10f) ONE(rsqrtf) ONE(tanhf) ONE(log1pf)
#define TWO(NAME) __device__ float NAME(float, float);
            TWO(atan2f) TWO(powf) TWO(fmodf) TWO(fminf) TWO(fmaxf) TWO(fdimf) TWO(copysignf) TWO(nextafterf) __device__
    float fmaf(float, float, float);
__device__ float frexpf(float, int*);
__device__ float ldexpf(float, int);
__device__ int ilogbf(float);

#define ATOMIC(NAME)              \
  __device__ int NAME(int*, int); \
  __device__ unsigned NAME(unsigned*, unsigned);
ATOMIC(atomicAdd)
ATOMIC(atomicSub) ATOMIC(atomicAnd) ATOMIC(atomicOr) ATOMIC(atomicXor) ATOMIC(atomicMin) ATOMIC(atomicMax) __device__
    float atomicAdd(float*, float);
__device__ unsigned atomicCAS(unsigned*, unsigned, unsigned);
__device__ unsigned long long atomicCAS(unsigned long long*, unsigned long long, unsigned long long);
