package nvrtc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// opened is NVRTC from the official Python packages or from MLX for CUDA, in the folders of ./build.sh.
var opened = sync.OnceValues(func() (*Compiler, error) {
	for _, folder := range []string{"build/nvrtc", "install"} {
		path := filepath.Join("../../../third_party/mlx-c", folder, "nvidia/cu13/lib/libnvrtc.so.13")
		if _, err := os.Stat(path); err == nil {
			return Open(path)
		}
	}
	return nil, ErrNotLoaded
})

// compiler skips the test without NVRTC.
func compiler(t *testing.T) *Compiler {
	t.Helper()
	c, err := opened()
	if err != nil {
		skip.Missing(t, skip.NVRTC, err)
	}
	return c
}

// cold sets MLXGRAD_CACHE to an empty folder for the test and returns the folder of the cache in it.
func cold(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("MLXGRAD_CACHE", dir)
	forget()
	t.Cleanup(forget)
	return filepath.Join(dir, "host")
}

// forget clears the programs of this process.
func forget() { programs = toolchain.Cache[[]byte]{} }

func target(t *testing.T, c *Compiler, major, minor int) Target {
	t.Helper()
	target, err := c.Target(major, minor)
	require.NoError(t, err)
	return target
}

// source returns a kernel that writes a number.
func source(number int) string {
	return fmt.Sprintf("extern \"C\" __global__ void write_it(float* y) { y[0] = __half2float(__half(%d.0f)); }\n", number)
}

func TestCodeOfTargets(t *testing.T) {
	c := compiler(t)
	cold(t)
	fence := `extern "C" __global__ void fence() { asm volatile("wgmma.fence.sync.aligned;\n"); }`
	for _, capability := range [][2]int{{8, 0}, {9, 0}, {10, 0}} {
		code, err := c.Compile(t.Context(), target(t, c, capability[0], capability[1]), "write_it", source(1))
		require.NoError(t, err)
		require.True(t, bytes.HasPrefix(code, []byte("\x7fELF")))
		require.Contains(t, string(code), "write_it")
		_, err = c.Compile(t.Context(), target(t, c, capability[0], capability[1]), "fence", fence)
		if capability[0] == 9 {
			require.NoError(t, err, "sm_90a has wgmma")
		} else {
			require.Error(t, err, "only sm_90a has wgmma")
		}
	}
	ptx, err := c.Compile(t.Context(), target(t, c, 99, 0), "write_it", source(1))
	require.NoError(t, err)
	require.Contains(t, string(ptx), ".visible .entry write_it(")
}

func TestCompileError(t *testing.T) {
	c := compiler(t)
	cold(t)
	_, err := c.Compile(t.Context(), target(t, c, 9, 0), "broken", "\nextern \"C\" __global__ void broken() { undeclared(); }\n")
	var refused *toolchain.CompileError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, fmt.Sprintf("broken.cu(%d): error: identifier \"undeclared\"", strings.Count(Prelude, "\n")+2))
	require.ErrorContains(t, err, "for sm_90a")
}

// A program is compiled once for all callers and processes, and again if its file is damaged.
func TestCache(t *testing.T) {
	c := compiler(t)
	dir := cold(t)
	hopper := target(t, c, 9, 0)
	first := Compilations()
	codes := make([][]byte, 6)
	var wg sync.WaitGroup
	for i := range codes {
		wg.Go(func() {
			var err error
			if codes[i], err = c.Compile(t.Context(), hopper, "write_it", source(1+i%2)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, first+2, Compilations())
	require.Equal(t, codes[0], codes[2])
	require.NotEqual(t, codes[0], codes[1])

	same := func() {
		forget()
		code, err := c.Compile(t.Context(), hopper, "write_it", source(1))
		require.NoError(t, err)
		require.Equal(t, codes[0], code)
	}
	same()
	require.Equal(t, first+2, Compilations(), "read from the cache on disk")
	_, err := c.Compile(t.Context(), target(t, c, 8, 0), "write_it", source(1))
	require.NoError(t, err)
	require.Equal(t, first+3, Compilations(), "compiled for another target")

	files, err := filepath.Glob(filepath.Join(dir, "*.cubin"))
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, path := range files {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		content[len(content)/2] ^= 1
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
	same()
	require.Equal(t, first+4, Compilations(), "the damaged file is not used")
}

// childVariable is set in processes that compile two kernels and print the number of compilations.
const childVariable = "NVRTC_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	c, err := opened()
	for i := 0; i < 2 && err == nil; i++ {
		var target Target
		if target, err = c.Target(9, 0); err == nil {
			_, err = c.Compile(context.Background(), target, "write_it", source(i))
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Print(Compilations())
	os.Exit(0)
}

// Two processes fill the cache at the same time. A third one compiles nothing.
func TestProcessesShareTheCache(t *testing.T) {
	compiler(t)
	cold(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	run := func() string {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), childVariable+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return string(out)
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { run() })
	}
	wg.Wait()
	require.Equal(t, "0", run())
}
