package main

import (
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// curve holds the losses of one training.
type curve struct {
	name   string
	begin  int // steps before the first loss
	losses []float64
}

// savePNG writes a plot of the curves to a file.
func savePNG(file string, curves []curve) error {
	p := plot.New()
	p.Title.Text = "Training a tiny language model"
	p.X.Label.Text = "step"
	p.Y.Label.Text = "cross-entropy, nats per letter"
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	for i, c := range curves {
		points := make(plotter.XYs, len(c.losses))
		for step, loss := range c.losses {
			points[step] = plotter.XY{X: float64(c.begin + step + 1), Y: loss}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.Color, line.Dashes = plotutil.Color(i), plotutil.Dashes(i)
		p.Add(line)
		p.Legend.Add(c.name, line)
	}
	return p.Save(20*vg.Centimeter, 12*vg.Centimeter, file)
}

// sparkline returns a bar chart of the values with at most width characters. Each shows the mean of its part of the
// values.
func sparkline(values []float64, width int) string {
	width = min(width, len(values))
	if width < 1 {
		return ""
	}
	means := make([]float64, width)
	for i := range means {
		part := values[i*len(values)/width : (i+1)*len(values)/width]
		for _, v := range part {
			means[i] += v / float64(len(part))
		}
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	low, high := slices.Min(means), slices.Max(means)
	var b strings.Builder
	for _, m := range means {
		bar := 0
		if high > low {
			bar = int((m - low) / (high - low) * float64(len(bars)-1))
		}
		b.WriteRune(bars[bar])
	}
	return b.String()
}
