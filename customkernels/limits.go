package customkernels

// MaxThreadgroupsYZ is the largest number of threadgroups along the second and the third axis of a grid that every
// backend accepts. It is CUDA's limit. Metal and the host executor accept more.
const MaxThreadgroupsYZ = 65535
