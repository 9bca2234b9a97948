#pragma once

/// Puts our index classes where a FAISS program names FAISS's: included before
/// a source of FAISS's (-include), after which GpuIndexFlat is ours.

#include <cstdint> // FAISS 1.7.3 has it from nobody under GCC 13

// First the headers that declare or name FAISS's own classes.
#include <faiss/IndexFlat.h>
#include <faiss/gpu/GpuCloner.h>
#include <faiss/gpu/GpuIndexFlat.h>
#include <faiss/gpu/GpuIndexIVF.h>
#include <faiss/gpu/GpuIndexIVFFlat.h>
#include <faiss/gpu/GpuIndexIVFPQ.h>
#include <faiss/gpu/GpuIndexIVFScalarQuantizer.h>
#include <faiss/gpu/StandardGpuResources.h>

#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFPQ.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFScalarQuantizer.h"

namespace faiss::gpu {
using faiss_bits::gpu::GpuIndexBitsFlat;
using faiss_bits::gpu::GpuIndexBitsFlatIP;
using faiss_bits::gpu::GpuIndexBitsFlatL2;
using faiss_bits::gpu::GpuIndexBitsIVFFlat;
using faiss_bits::gpu::GpuIndexBitsIVFPQ;
using faiss_bits::gpu::GpuIndexBitsIVFScalarQuantizer;
} // namespace faiss::gpu

// GpuIndexFlatConfig stays FAISS's: our constructors take it.
#define GpuIndexFlat GpuIndexBitsFlat
#define GpuIndexFlatIP GpuIndexBitsFlatIP
#define GpuIndexFlatL2 GpuIndexBitsFlatL2
#define GpuIndexIVFFlat GpuIndexBitsIVFFlat
#define GpuIndexIVFPQ GpuIndexBitsIVFPQ
#define GpuIndexIVFScalarQuantizer GpuIndexBitsIVFScalarQuantizer
