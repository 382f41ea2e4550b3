// Package ranks starts the processes of a distributed program, with the environment from which MLX's backends read their
// peers.
package ranks

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
)

// Hosts holds the addresses of each rank, as MLX's ring reads them from a file. An address is HOST:PORT.
type Hosts [][]string

// LocalHosts returns an address on this machine for each of n ranks. The ports are free when it returns. They are below
// those that the system gives to outgoing connections.
func LocalHosts(n int) (Hosts, error) {
	var hosts Hosts
	for len(hosts) < n {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer l.Close() // after all ports are chosen, so that they differ
		hosts = append(hosts, []string{l.Addr().String()})
	}
	return hosts, nil
}

// ReadHosts reads the addresses from a file in the JSON format of MLX's ring, such as [["10.0.0.1:5000"],
// ["10.0.0.2:5000"]].
func ReadHosts(file string) (Hosts, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	const format = `it must be a list with the addresses of each rank, such as [["10.0.0.1:5000"], ["10.0.0.2:5000"]]`
	var hosts Hosts
	if err := json.Unmarshal(text, &hosts); err != nil {
		return nil, fmt.Errorf("%s: %w; %s", file, err, format)
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("%s names no rank; %s", file, format)
	}
	for rank, addresses := range hosts {
		if len(addresses) == 0 {
			return nil, fmt.Errorf("%s: rank %d has no address; %s", file, rank, format)
		}
		for _, a := range addresses {
			if host, _, err := net.SplitHostPort(a); err != nil || net.ParseIP(host) == nil {
				return nil, fmt.Errorf("%s: the address of rank %d is %q; it must be an IP address and a port, such as "+
					"10.0.0.1:5000", file, rank, a)
			}
		}
	}
	return hosts, nil
}

// onThisMachine returns the ranks whose first address belongs to this machine.
func (h Hosts) onThisMachine() ([]int, error) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var local []int
	for rank, addresses := range h {
		host, _, err := net.SplitHostPort(addresses[0])
		if err != nil {
			return nil, err
		}
		ip := net.ParseIP(host)
		found := ip.IsLoopback()
		for _, a := range own {
			if network, ok := a.(*net.IPNet); ok && network.IP.Equal(ip) {
				found = true
			}
		}
		if found {
			local = append(local, rank)
		}
	}
	return local, nil
}

// Environments returns, for each rank, the variables that MLX reads. It writes files to the folder dir, which must
// exist until the processes end. gpus holds, for NCCL, the CUDA device of each rank.
//
// A single rank gets no variables of a backend: its group has one process (see [distributed.Init]). Each rank has its
// own TMPDIR, since MLX does not lock the libraries that it compiles there (see [mlxc.Compile]). For the same reason each
// rank with a GPU has its own folder of MLX's compiled kernels. That folder stays, because compiling them takes a minute.
func Environments(dir string, backend distributed.Backend, hosts Hosts, gpus map[int]string) ([][]string, error) {
	text, err := json.Marshal(hosts)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "hosts.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	all := make([][]string, len(hosts))
	for rank := range hosts {
		temporary := filepath.Join(dir, strconv.Itoa(rank))
		if err := os.MkdirAll(temporary, 0o700); err != nil {
			return nil, err
		}
		all[rank] = []string{"TMPDIR=" + temporary}
		if gpu, ok := gpus[rank]; ok {
			all[rank] = append(all[rank], "CUDA_VISIBLE_DEVICES="+gpu)
			if cache, err := os.UserCacheDir(); err == nil && os.Getenv("MLX_PTX_CACHE_DIR") == "" {
				all[rank] = append(all[rank], "MLX_PTX_CACHE_DIR="+filepath.Join(cache, "mlxgrad", "mlx-"+mlxc.Version(), strconv.Itoa(rank)))
			}
		}
		if len(hosts) == 1 {
			continue
		}
		all[rank] = append(all[rank], "MLX_RANK="+strconv.Itoa(rank), "MLX_WORLD_SIZE="+strconv.Itoa(len(hosts)))
		if backend == distributed.NCCL {
			host, port, err := net.SplitHostPort(hosts[0][0])
			if err != nil {
				return nil, err
			}
			all[rank] = append(all[rank], "NCCL_HOST_IP="+host, "NCCL_PORT="+port)
			if os.Getenv("NCCL_SOCKET_IFNAME") == "" && net.ParseIP(host).IsLoopback() {
				all[rank] = append(all[rank], "NCCL_SOCKET_IFNAME=lo")
			}
		} else {
			all[rank] = append(all[rank], "MLX_HOSTFILE="+file)
		}
	}
	return all, nil
}

// inherited returns this process's environment without the variables of an outer launch.
func inherited() []string {
	var all []string
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "MLX_RANK", "MLX_WORLD_SIZE", "MLX_HOSTFILE", "NCCL_HOST_IP", "NCCL_PORT":
		default:
			all = append(all, v)
		}
	}
	return all
}
