package main

import (
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// curve is the losses of one training, after the steps that it began with.
type curve struct {
	name   string
	begin  int
	losses []float64
}

// savePNG draws curves into a file.
func savePNG(file string, curves []curve) error {
	p := plot.New()
	p.Title.Text = "Training a tiny language model"
	p.X.Label.Text = "step"
	p.Y.Label.Text = "cross-entropy, nats a letter"
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

// sparkline draws values with at most width letters, each the mean of its share.
func sparkline(values []float64, width int) string {
	width = min(width, len(values))
	if width < 1 {
		return ""
	}
	means := make([]float64, width)
	for i := range means {
		share := values[i*len(values)/width : (i+1)*len(values)/width]
		for _, v := range share {
			means[i] += v / float64(len(share))
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
