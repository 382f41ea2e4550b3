package msl

// PositionTypes holds the thread-position attributes that MLX's custom kernels support. The value is the type with
// which MLX declares the argument.
var PositionTypes = map[string]string{
	"dispatch_quadgroups_per_threadgroup": "uint",
	"dispatch_simdgroups_per_threadgroup": "uint",
	"dispatch_threads_per_threadgroup":    "uint3",
	"grid_origin":                         "uint3",
	"grid_size":                           "uint3",
	"quadgroup_index_in_threadgroup":      "uint",
	"quadgroups_per_threadgroup":          "uint",
	"simdgroup_index_in_threadgroup":      "uint",
	"simdgroups_per_threadgroup":          "uint",
	"thread_execution_width":              "uint",
	"thread_index_in_quadgroup":           "uint",
	"thread_index_in_simdgroup":           "uint",
	"thread_index_in_threadgroup":         "uint",
	"thread_position_in_grid":             "uint3",
	"thread_position_in_threadgroup":      "uint3",
	"threadgroup_position_in_grid":        "uint3",
	"threadgroups_per_grid":               "uint3",
	"threads_per_grid":                    "uint3",
	"threads_per_simdgroup":               "uint",
	"threads_per_threadgroup":             "uint3",
}

// dtypes maps MSL's names of element types to the names that MLX uses for its dtypes in generated texts.
var dtypes = map[string]string{
	"bool": "bool", "bfloat": "bfloat16_t", "half": "float16_t", "float": "float",
	"int8_t": "int8_t", "int16_t": "int16_t", "int32_t": "int32_t", "int64_t": "int64_t",
	"uint8_t": "uint8_t", "uint16_t": "uint16_t", "uint32_t": "uint32_t", "uint64_t": "uint64_t",
	"uchar": "uint8_t", "short": "int16_t", "ushort": "uint16_t", "int": "int32_t", "uint": "uint32_t",
	"long": "int64_t", "ulong": "uint64_t", "unsigned": "uint32_t", "unsigned int": "uint32_t",
	"unsigned char": "uint8_t", "unsigned short": "uint16_t", "unsigned long": "uint64_t", "size_t": "uint64_t",
	"float16_t": "float16_t", "bfloat16_t": "bfloat16_t", "complex64_t": "complex64_t",
}

// DType returns MLX's name of an MSL element type in generated texts, for example "float16_t" for half. It returns ""
// for a type that is not an MLX dtype.
func DType(element string) string { return dtypes[element] }
