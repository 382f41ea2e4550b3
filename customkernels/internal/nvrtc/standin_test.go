package nvrtc

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// standIn is a library with NVRTC's functions that rejects every program. LOG is its log, and LOG_CODE the result of
// the function that returns it.
const standIn = `#include <stddef.h>
#include <string.h>
int nvrtcVersion(int* major, int* minor) { *major = 13; *minor = 0; return 0; }
int nvrtcGetNumSupportedArchs(int* n) { *n = 1; return 0; }
int nvrtcGetSupportedArchs(int* list) { *list = 90; return 0; }
const char* nvrtcGetErrorString(int code) { return code == 6 ? "NVRTC_ERROR_COMPILATION" : "another error"; }
int nvrtcCreateProgram(void** p) { return 0; }
int nvrtcDestroyProgram(void** p) { return 0; }
int nvrtcCompileProgram(void* p) { return 6; }
int nvrtcGetProgramLogSize(void* p, size_t* n) { *n = sizeof LOG; return 0; }
int nvrtcGetProgramLog(void* p, char* log) { strcpy(log, LOG); return LOG_CODE; }
int nvrtcGetCUBINSize(void* p, size_t* n) { return 1; }
int nvrtcGetCUBIN(void* p, char* code) { return 1; }
int nvrtcGetPTXSize(void* p, size_t* n) { return 1; }
int nvrtcGetPTX(void* p, char* code) { return 1; }
`

// A rejected program is an error, also if NVRTC has no log.
func TestErrorWithoutALog(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		skip.Missing(t, skip.CXX, err)
	}
	cold(t)
	for want, flags := range map[string][]string{
		"line 1 is wrong": {`-DLOG="line 1 is wrong"`, "-DLOG_CODE=0"},
		"nvrtcCompileProgram failed: NVRTC_ERROR_COMPILATION": {`-DLOG=""`, "-DLOG_CODE=0"},
		"nvrtcCompileProgram failed: NVRTC_ERROR_COMPIL":      {`-DLOG="unfinished"`, "-DLOG_CODE=7"},
	} {
		dir := t.TempDir()
		for _, name := range []string{"lib", "include"} {
			require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		}
		for _, name := range []string{"cuda_fp16.h", "cuda_fp16.hpp", "cuda_bf16.h", "cuda_bf16.hpp"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "include", name), nil, 0o600))
		}
		source, library := filepath.Join(dir, "nvrtc.c"), filepath.Join(dir, "lib", "libnvrtc.so.13")
		require.NoError(t, os.WriteFile(source, []byte(standIn), 0o600))
		out, err := exec.Command(cc, append(flags, "-shared", "-fPIC", "-o", library, source)...).CombinedOutput()
		require.NoError(t, err, string(out))
		c, err := Open(library)
		require.NoError(t, err)
		code, err := c.Compile(t.Context(), target(t, c, 9, 0), "f", want)
		require.ErrorContains(t, err, want)
		require.Nil(t, code)
	}
}
