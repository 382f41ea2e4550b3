package sanitizer

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/confine"
)

// programText is a program that makes one attempt, which its first argument names, and prints the error number.
const programText = `
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static bool tries(const char* what, const char* with) {
  if (!strcmp(what, "read")) return open(with, O_RDONLY) >= 0;
  if (!strcmp(what, "write")) return open(with, O_WRONLY | O_CREAT, 0600) >= 0;
  if (!strcmp(what, "remove")) return unlink(with) == 0;
  if (!strcmp(what, "execute")) return execl(with, with, "-c", "true", nullptr) == 0;
  if (!strcmp(what, "kill")) return kill(atoi(with), 0) == 0;
  if (!strcmp(what, "trace")) return ptrace(PTRACE_ATTACH, atoi(with), nullptr, nullptr) == 0;
  if (!strcmp(what, "namespace")) return unshare(CLONE_NEWUSER) == 0;
  if (!strcmp(what, "memory")) return mmap(nullptr, 5ul << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
  if (!strcmp(what, "file")) return ftruncate(open("big", O_WRONLY | O_CREAT, 0600), 3l << 30) == 0;
  if (!strcmp(what, "memory of")) {
    char here[8];
    iovec local = {here, sizeof here}, remote = {reinterpret_cast<void*>(0x400000), sizeof here};
    return process_vm_readv(atoi(with), &local, 1, &remote, 1, 0) > 0;
  }
  if (!strcmp(what, "connect")) {
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in a = {};
    a.sin_family = AF_INET;
    a.sin_port = htons(atoi(with));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return s >= 0 && connect(s, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0;
  }
  return true;
}

int main(int, char** argv) {
  errno = 0;
  if (tries(argv[1], argv[2])) puts("succeeded");
  else printf("errno %d\n", errno);
}
`

var programFolder string

// programPath compiles programText, once.
var programPath = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "attempts-")
	if err != nil {
		return "", err
	}
	programFolder = dir
	source := filepath.Join(dir, "program.cpp")
	if err := os.WriteFile(source, []byte(programText), 0o600); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "program")
	return path, exec.Command("c++", "-o", path, source).Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(programFolder)
	os.Exit(code)
}

// program returns a function that makes an attempt in the confined start of a kernel, and first shows that it succeeds
// without it.
func program(what, with string) func(t *testing.T) string {
	return func(t *testing.T) string {
		path, err := programPath()
		require.NoError(t, err)
		if what != "trace" && what != "remove" && what != "memory of" { // these would disturb this process
			out, err := exec.Command(path, what, with).CombinedOutput()
			require.NoError(t, err)
			if what == "namespace" && string(out) == "errno 1\n" {
				t.Log("this machine refuses it without confinement, too, as many containers do")
			} else if what != "execute" {
				require.Equal(t, "succeeded\n", string(out), "the attempt must succeed without confinement")
			}
			if what == "write" {
				require.NoError(t, os.Remove(with))
			}
		}
		return output(t, confine.Kernel(path), what, with)
	}
}

// compiler returns a function that makes an attempt in the confined start of a compiler.
func compiler(what string) func(t *testing.T) string {
	return func(t *testing.T) string {
		path, err := programPath()
		require.NoError(t, err)
		c := confine.Compiler([]string{path}, what, "")
		c.Dir = t.TempDir()
		c.Write = []string{c.Dir}
		return output(t, c)
	}
}

// compiles returns a function that gives a text to the compiler, without the refusals.
func compiles(text string) func(t *testing.T) string {
	return func(t *testing.T) string {
		c := confine.Compiler([]string{"/usr/bin/c++"}, "-E", "-x", "c++", "f.cpp")
		c.Dir = t.TempDir()
		c.Write = []string{c.Dir}
		require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "f.cpp"), []byte(text+"\n"), 0o600))
		return output(t, c)
	}
}

// output runs a command with more arguments and returns its output and its error.
func output(t *testing.T, c *confine.Command, args ...string) string {
	t.Helper()
	out := new(confine.Output)
	c.Args = append(c.Args, args...)
	c.Stdout, c.Stderr = out, out
	if err := c.Run(t.Context()); err != nil {
		return out.String() + err.Error()
	}
	return out.String()
}
