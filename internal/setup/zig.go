package setup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// zigs maps platforms to the Python package of Zig, a C and C++ compiler that contains macOS's headers.
var zigs = map[string]wheel{
	"linux/amd64": {
		Package: "ziglang", Version: "0.16.0", Platform: "manylinux_2_12_x86_64",
		File: "ziglang-0.16.0-py3-none-manylinux_2_12_x86_64.manylinux2010_x86_64.musllinux_1_1_x86_64.whl",
		Size: 97941847, SHA256: "9fcda73f62b851dd72a54b710ad40a209896db14cfb13649e62191243556342b",
	},
}

// A crossCompiler compiles for macOS on arm64.
type crossCompiler struct {
	cc  []string
	cxx *toolchain
	env []string // of the go command
}

// zig returns a cross-compiler and downloads Zig if necessary. It returns nil if there is no package for this machine.
func (s *setup) zig(ctx context.Context) (*crossCompiler, error) {
	zig, ok := zigs[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return nil, nil
	}
	// The compiler's path is part of the keys of its objects. The folder is kept, so that the objects stay valid.
	folder := s.path("build", "zig-"+zig.Version)
	if _, err := os.Stat(folder); err != nil {
		file, err := s.bring(zig.File, zig.Size, zig.SHA256, func() error { return s.pipDownload(ctx, zig) })
		if err != nil {
			return nil, err
		}
		unpacked := s.path("build", "zig.tmp")
		if err := os.RemoveAll(unpacked); err != nil {
			return nil, err
		}
		if err := unzip(file, unpacked); err != nil {
			return nil, err
		}
		if err := os.Chmod(filepath.Join(unpacked, "ziglang", "zig"), 0o755); err != nil {
			return nil, err
		}
		if err := os.Rename(unpacked, folder); err != nil {
			return nil, err
		}
	}
	stubs, err := s.appleStubs()
	if err != nil {
		return nil, err
	}
	program := filepath.Join(folder, "ziglang", "zig")
	target := []string{"-target", "aarch64-macos.14.0"}
	cache := s.path("build", "zig-cache")
	caches := []string{"ZIG_GLOBAL_CACHE_DIR=" + cache, "ZIG_LOCAL_CACHE_DIR=" + cache}
	const lookup = "-Wl,-undefined,dynamic_lookup" // the stubs list no symbols
	return &crossCompiler{
		cc: append([]string{program, "cc"}, target...),
		cxx: &toolchain{
			command: append([]string{program, "c++"},
				target...), version: "zig " + zig.Version, goos: "darwin", env: caches,
			// Exceptions pass between these libraries and libmlx, so all must use macOS's C++ library and not the newer
			// one of Zig. Availability annotations restrict code to macOS 14.
			compileExtra: []string{
				"-g0", "-Wno-macro-redefined", "-U_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS", "-D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=1",
			},
			linkExtra: []string{"-nostdlib++", filepath.Join(stubs, "libc++.tbd"), lookup, "-Wl,-S"}, // -S removes the paths of objects
		},
		env: append(caches, "CGO_LDFLAGS=-L"+stubs+" -F"+stubs+" "+lookup),
	}, nil
}

// goEnv is the environment in which the go command builds for macOS.
func (c *crossCompiler) goEnv() []string {
	return append([]string{
		"CGO_ENABLED=1", "GOOS=darwin", "GOARCH=arm64", "CC=" + strings.Join(c.cc,
			" "), "CXX=" + strings.Join(c.cxx.command, " "),
	}, c.env...)
}

// stubs maps stub files to the macOS libraries that Go's runtime and libmlxg link and that Zig lacks.
var stubs = map[string]string{
	"libc++.tbd":    "/usr/lib/libc++.1.dylib",
	"libresolv.tbd": "/usr/lib/libresolv.9.dylib",
	"CoreFoundation.framework/CoreFoundation.tbd": "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation",
	"Security.framework/Security.tbd":             "/System/Library/Frameworks/Security.framework/Versions/A/Security",
}

const stub = "--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\ninstall-name: '%s'\n...\n"

// appleStubs writes the stubs and returns their folder.
func (s *setup) appleStubs() (folder string, err error) {
	folder = s.path("build", "stubs")
	for name, of := range stubs {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, fmt.Appendf(nil, stub, of), 0o644); err != nil {
			return "", err
		}
	}
	return folder, nil
}
