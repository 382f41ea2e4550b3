package bench

import (
	"embed"
	"runtime"
	"time"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

//go:embed limits.metal
var limitShaders embed.FS

// measureLimits measures the limits of a CPU with all threads of the host executor, in about 0.3 s once the kernels are
// compiled. MLX's addition is no such limit: it uses one thread, and often new memory.
func measureLimits() (*report.CPULimits, error) {
	defer mlxc.ClearCache()
	var rates [2]float64
	for i, p := range []probe{addProbe(), multiplyAddProbe()} {
		time, err := p.bestTime()
		if err != nil {
			return nil, err
		}
		rates[i] = float64(p.work) / time.Seconds()
	}
	return &report.CPULimits{Bandwidth: rates[0] / 1e9, Arithmetic: rates[1] / 1e12}, nil
}

// A probe is a launch of a kernel of limits.metal on arrays of ones, or on other sets with the same work. It is short,
// so that some repetitions run undisturbed by other work on the machine.
type probe struct {
	kernel string
	inputs []int // sizes
	launch customkernels.Launch
	work   int // in bytes or FLOPs
}

// addProbe adds two arrays of 8 MiB, or up to 64 MiB with more threads of the executor.
func addProbe() probe {
	const perThread, float32Size = 4096, 4
	n := min(runtime.GOMAXPROCS(0), 8) * (8 << 20) / float32Size
	return probe{kernel: "add", inputs: []int{n, n}, work: 3 * n * float32Size, launch: customkernels.Launch{
		Grid:     [3]int{n / perThread},
		Template: []mlxc.TemplateArg{{Name: "COUNT", Value: perThread}},
		Outputs:  []mlxc.Output{{Shape: []int{n}, DType: mlxc.Float32}},
	}}
}

// multiplyAddProbe gives each thread of the executor 128 threads of the grid, which take about 2 ms together.
func multiplyAddProbe() probe {
	const perThread = 2 * 12 * 16 << 12
	threads := 128 * runtime.GOMAXPROCS(0)
	return probe{kernel: "multiply_add", inputs: []int{32}, work: perThread * threads, launch: customkernels.Launch{
		Grid:     [3]int{threads},
		Template: []mlxc.TemplateArg{{Name: "FLOPS", Value: perThread}},
		Outputs:  []mlxc.Output{{Shape: []int{threads}, DType: mlxc.Float32}},
	}}
}

// prepare returns a function that adds repetition i of the launch to the graph. The sets of inputs belong to the current
// scope.
func (p probe) prepare() (func(i int) *mlxc.Array, error) {
	library, err := customkernels.Load(limitShaders, "limits.metal")
	if err != nil {
		return nil, err
	}
	kernel, err := library.Kernel(p.kernel)
	if err != nil {
		return nil, err
	}
	var inputs []*mlxc.Array
	for _, n := range p.inputs {
		inputs = append(inputs, mlxc.Ones(mlxc.Float32, n))
	}
	sets, err := manySets(operands{inputs: inputs})
	return func(i int) *mlxc.Array { return kernel.Launch(p.launch, sets[i%len(sets)].inputs...)[0] }, err
}

// bestTime returns the shortest time of a repetition. The first one compiles the kernel and writes to new memory.
func (p probe) bestTime() (best time.Duration, err error) {
	const least, enough = 2, 100 * time.Millisecond
	mlxc.WithScope(func() {
		var launch func(int) *mlxc.Array
		if launch, err = p.prepare(); err != nil {
			return
		}
		start := time.Now()
		for n := 0; err == nil && (n < least || time.Since(start) < enough); n++ {
			mlxc.WithScope(func() {
				output := launch(n)
				begin := time.Now()
				err = mlxc.Eval(output)
				if t := time.Since(begin); n == 0 || t < best {
					best = t
				}
			})
		}
	})
	return best, err
}
