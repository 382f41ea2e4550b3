package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// launch starts n processes of this program that are connected in a ring on this machine, and waits for them. If one
// fails, the operations of its peers fail, so that all end. The processes write to out at the same time, which is safe
// for a file.
func launch(ctx context.Context, n int, args []string, out io.Writer) error {
	dir, err := os.MkdirTemp("", "parallel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	hosts, err := writeHosts(dir, n)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var started []*exec.Cmd
	for rank := range n {
		p := exec.CommandContext(ctx, program, args...)
		p.Env = append(os.Environ(), "MLX_HOSTFILE="+hosts, "MLX_RANK="+strconv.Itoa(rank))
		p.Stdout, p.Stderr = out, os.Stderr
		if err = p.Start(); err != nil {
			stop() // the others would wait for this process
			break
		}
		started = append(started, p)
	}
	for rank, p := range started {
		if failed := p.Wait(); failed != nil {
			err = errors.Join(err, fmt.Errorf("process %d: %w", rank, failed))
		}
	}
	return err
}

// writeHosts writes the addresses of the processes to a file, as MLX's ring reads them, and returns its name.
func writeHosts(dir string, n int) (string, error) {
	var hosts [][]string
	for range n {
		// The system chooses a free port. Another program could take it before the process listens.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		defer l.Close()
		hosts = append(hosts, []string{l.Addr().String()})
	}
	text, err := json.Marshal(hosts)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "hosts.json")
	return file, os.WriteFile(file, text, 0o600)
}
