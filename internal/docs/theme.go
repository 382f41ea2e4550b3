package docs

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A theme has the colors of a figure. The background is transparent.
type theme struct {
	Name       string // "light" or "dark"
	text, grid color.Color
	series     []color.Color
}

// themes are the colors for light and dark pages.
var themes = []theme{
	{
		Name: "light", text: rgb(0x1f2328), grid: rgb(0xd1d9e0),
		series: []color.Color{rgb(0x0969da), rgb(0xbc4c00), rgb(0x1a7f37)},
	},
	{
		Name: "dark", text: rgb(0xf0f6fc), grid: rgb(0x3d444d),
		series: []color.Color{rgb(0x4493f8), rgb(0xf0883e), rgb(0x3fb950)},
	},
}

func rgb(v uint32) color.Color {
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 255}
}

// A point is a value in a figure. Series selects its color and shape, in the order of first appearance.
type point struct {
	Series string
	X, Y   float64
}

// lines draws y over x on logarithmic axes, a line for each series. The ticks of x are its values.
func (t theme) lines(x, y string, points []point) (*plot.Plot, error) {
	p := t.axes(x, y)
	var ticks plot.ConstantTicks
	for i, name := range seriesOf(points) {
		var of plotter.XYs
		for _, v := range points {
			if v.Series == name {
				of = append(of, plotter.XY{X: v.X, Y: v.Y})
				ticks = append(ticks, plot.Tick{Value: v.X, Label: strconv.FormatFloat(v.X, 'g', -1, 64)})
			}
		}
		line, marks, err := plotter.NewLinePoints(of)
		if err != nil {
			return nil, fmt.Errorf("figure: series %s: %w", name, err)
		}
		line.Color, line.Width = t.series[i], vg.Points(2)
		marks.GlyphStyle = t.glyph(i)
		p.Add(line, marks)
		p.Legend.Add(name, line, marks)
	}
	p.X.Tick.Marker = ticks
	p.Y.Max *= 2
	p.Legend.Left, p.Legend.Top = true, true
	return p, nil
}

// errors draws y over x on logarithmic axes as points, with the line limit(x).
func (t theme) errors(x, y string, points []point, limit func(x float64) float64) (*plot.Plot, error) {
	p := t.axes(x, y)
	line := plotter.NewFunction(limit)
	line.Color, line.Samples = t.text, 500
	p.Add(line)
	p.Legend.Add("limit", line)
	p.Legend.Top = true
	if err := t.scatter(p, points); err != nil {
		return nil, err
	}
	p.Legend.Left = true
	// Both axes have one range, which shows the limit even if all errors are zero.
	low, high := 1.0, 4.0
	for _, v := range points {
		low, high = min(low, v.X, v.Y), max(high, v.X, v.Y)
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = low/1.4, high*1.4, low/1.4, high*1.4
	return p, nil
}

// ratios draws a row for each label. X of a point is its ratio, on a logarithmic axis; Y is the row, from 0 at the
// top. A line marks the ratio 1.
func (t theme) ratios(x string, labels []string, points []point) (*plot.Plot, error) {
	p := t.axes(x, "")
	flipped := slices.Clone(points)
	low, high := 0.5, 2.0
	for i, v := range points {
		flipped[i].Y = float64(len(labels)) - v.Y // rows count from the top, and the axis is linear from 1
		low, high = min(low, v.X), max(high, v.X)
	}
	one, err := plotter.NewLine(plotter.XYs{{X: 1, Y: 0.4}, {X: 1, Y: float64(len(labels)) + 0.6}})
	if err != nil {
		return nil, err
	}
	one.Color = t.text
	p.Add(one)
	if err := t.scatter(p, flipped); err != nil {
		return nil, err
	}
	var rows, ticks plot.ConstantTicks
	for i, l := range labels {
		rows = append(rows, plot.Tick{Value: float64(len(labels) - i), Label: l})
	}
	for v := 1.0 / 16; v <= 256; v *= 2 {
		if v >= low/2 && v <= high*2 {
			ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 3, 64) + "×"})
		}
	}
	p.X.Tick.Marker, p.Y.Tick.Marker, p.Y.Scale = ticks, rows, plot.LinearScale{}
	p.X.Min, p.X.Max = low/1.2, high*2 // room for the legend
	p.Y.Min, p.Y.Max = 0.4, float64(len(labels))+0.6
	p.Legend.Top = true
	return p, nil
}

// writeSVG draws p with a width and height in centimeters.
func writeSVG(w io.Writer, p *plot.Plot, width, height float64) error {
	canvas := vgsvg.New(vg.Length(width)*vg.Centimeter, vg.Length(height)*vg.Centimeter)
	p.Draw(draw.New(canvas))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return err
	}
	// Few systems have the font, whose widths are Arial's.
	text := bytes.ReplaceAll(out.Bytes(), []byte("Liberation Sans"), []byte("Liberation Sans,Arial,Helvetica,sans-serif"))
	_, err := w.Write(text)
	return err
}

func (t theme) scatter(p *plot.Plot, points []point) error {
	for i, name := range seriesOf(points) {
		var of plotter.XYs
		for _, v := range points {
			if v.Series == name {
				of = append(of, plotter.XY{X: v.X, Y: v.Y})
			}
		}
		marks, err := plotter.NewScatter(of)
		if err != nil {
			return fmt.Errorf("figure: series %s: %w", name, err)
		}
		marks.GlyphStyle = t.glyph(i)
		p.Add(marks)
		p.Legend.Add(name, marks)
	}
	return nil
}

func (t theme) glyph(series int) draw.GlyphStyle {
	shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.TriangleGlyph{}, draw.BoxGlyph{}}
	return draw.GlyphStyle{Color: t.series[series], Radius: vg.Points(3), Shape: shapes[series]}
}

// axes returns a plot with logarithmic axes in the theme's colors.
func (t theme) axes(x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	sans := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(11)}
	for axis, label := range map[*plot.Axis]string{&p.X: x, &p.Y: y} {
		axis.Label.Text, axis.Label.TextStyle.Font, axis.Label.TextStyle.Color = label, sans, t.text
		axis.Tick.Label.Font, axis.Tick.Label.Color = sans, t.text
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = t.grid, t.grid
		axis.Scale, axis.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	p.Legend.TextStyle.Font, p.Legend.TextStyle.Color = sans, t.text
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = t.grid, t.grid
	p.Add(grid)
	return p
}

func seriesOf(points []point) []string {
	var names []string
	for _, v := range points {
		if !slices.Contains(names, v.Series) && !math.IsNaN(v.X) && !math.IsNaN(v.Y) {
			names = append(names, v.Series)
		}
	}
	return names
}

// textColor is the color of text, such as "#1f2328".
func (t theme) textColor() string { return hex(t.text) }

// gridColor is the color of lines and frames.
func (t theme) gridColor() string { return hex(t.grid) }

// accent is the color of the first series.
func (t theme) accent() string { return hex(t.series[0]) }

func hex(c color.Color) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
