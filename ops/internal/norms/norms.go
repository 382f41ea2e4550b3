// Package norms connects package separate to the kernels of package ops, which sets the variables when it is
// initialized.
package norms

import "github.com/mlxgrad/mlxgrad/mlxc"

// RMSNormSeparate implements separate.RMSNorm.
var RMSNormSeparate func(x, weight *mlxc.Array, eps float32) *mlxc.Array

// LayerNormSeparate implements separate.LayerNorm.
var LayerNormSeparate func(x, weight, bias *mlxc.Array, eps float32) *mlxc.Array
