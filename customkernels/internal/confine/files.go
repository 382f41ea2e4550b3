package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// libraryPath is the environment variable with the folders of shared libraries.
const libraryPath = "LD_LIBRARY_PATH"

// stores hold the packages of Nix and Guix.
var stores = []string{"/nix/store", "/gnu/store"}

// libraryFiles returns the folders of shared libraries, and the files of the dynamic linker.
func libraryFiles() []string {
	files := append([]string{
		"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64",
		"/etc/ld.so.cache", "/etc/ld.so.preload",
	}, stores...)
	return append(files, fromEnvironment(libraryPath)...)
}

// compilerFiles returns the files and folders that a compiler reads: the system's folders of programs, headers and
// libraries, the folders around the compiler, and those that its arguments and the environment name.
func compilerFiles(command []string) []string {
	files := append([]string{
		"/usr", "/bin", "/sbin", "/dev/urandom",
		// -march=native, and the number of processors
		"/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu",
	}, libraryFiles()...)
	files = append(files, fromEnvironment("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH",
		"GCC_EXEC_PREFIX")...)
	for _, word := range command {
		if at := strings.IndexByte(word, '/'); at >= 0 { // a program, --sysroot=/folder or -I/folder
			word = word[at:]
		} else if path, err := exec.LookPath(word); err == nil {
			word = path
		} else {
			continue
		}
		files = append(files, around(word)...)
		if real, err := filepath.EvalSymlinks(word); err == nil && real != word {
			files = append(files, around(real)...)
		}
	}
	return files
}

// around returns a program and the folders beside its own in which a compiler has its parts.
func around(program string) []string {
	prefix := filepath.Dir(filepath.Dir(program))
	files := []string{program}
	for _, name := range []string{"bin", "include", "lib", "lib32", "lib64", "libexec"} {
		files = append(files, filepath.Join(prefix, name))
	}
	targets, _ := filepath.Glob(filepath.Join(prefix, "*-linux-*")) // such as x86_64-conda-linux-gnu
	return append(files, targets...)
}

// fromEnvironment returns the absolute paths in lists of folders.
func fromEnvironment(variables ...string) []string {
	var folders []string
	for _, v := range variables {
		for _, folder := range filepath.SplitList(os.Getenv(v)) {
			if filepath.IsAbs(folder) {
				folders = append(folders, folder)
			}
		}
	}
	return folders
}
