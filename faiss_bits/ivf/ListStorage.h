#pragma once

#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>
#include <faiss/gpu/GpuIndicesOptions.h>

#include "faiss_bits/common/FaissCompat.h"
#include "kernels/ivf/IvfLists.h"

namespace faiss {
struct InvertedLists;
namespace gpu {
class IVFBase;
class IVFFlat;
class IVFPQ;
} // namespace gpu
} // namespace faiss

/// The inverted lists that FAISS's GPU indexes hold. Not part of the API.
namespace faiss_bits::gpu::detail {

/// The lists of float32 vectors as they lie now, until the next change.
IvfLists floatListsOf(
        const faiss::gpu::IVFFlat& index,
        faiss::gpu::IndicesOptions options);

/// The lists of codes of a scalar quantizer, with what decodes them.
///
/// Errors  FaissException if the vectors are residuals and the quantizer has
///         no float32 centroids (a GpuIndexBitsFlat of bfloat16)
IvfLists scalarListsOf(
        const faiss::gpu::IVFFlat& index,
        faiss::gpu::IndicesOptions options);

/// Likewise the lists of codes of a product quantizer, of so many bits.
IvfLists productListsOf(
        const faiss::gpu::IVFPQ& index,
        faiss::gpu::IndicesOptions options,
        int bitsPerCode);

/// Appends lists to `lists`, which are empty and as FAISS has them on the CPU,
/// and makes `codebook` theirs. Waits for the stream.
void copyProductLists(
        const faiss::gpu::IVFPQ& index,
        cudaStream_t stream,
        std::vector<float>& codebook,
        faiss::InvertedLists& lists);

/// No `nprobe` lists have more vectors together. `exact`: as few as that can
/// be, at the cost of looking at every list on the host.
idx_t mostVectorsOf(const faiss::gpu::IVFBase& index, idx_t nprobe, bool exact);

/// How often lists of any index of ours have lost vectors. As long as that, a
/// base and its index's ntotal are the same, lists have the same lengths: FAISS
/// itself only adds to them, with another ntotal, or makes another base.
uint64_t numListLosses();
void countListLoss();

/// Vectors of each list.
std::vector<idx_t> lengthsOf(const faiss::gpu::IVFBase& index);

/// INDICES_CPU: the ids of each list. Else nullptr.
const std::vector<std::vector<idx_t>>* hostIdsOf(
        const faiss::gpu::IVFBase& index);

/// Copies lists of the CPU to lists that are empty.
void copyListsFrom(
        faiss::gpu::IVFBase& index,
        const faiss::InvertedLists* lists);

/// The lists have no more vectors than `lengths` says, those in front, and with
/// INDICES_CPU the ids `hostIds`; where these are empty, the first of their
/// own. Their memory stays, with zeros behind the last vector where FAISS needs
/// them. Waits for the stream.
///
/// lists  of the index, as they were before
void shrinkLists(
        faiss::gpu::IVFBase& index,
        const IvfLists& lists,
        const std::vector<idx_t>& lengths,
        std::vector<std::vector<idx_t>> hostIds,
        cudaStream_t stream);

/// The same after FAISS failed to add vectors: lists may be longer than the
/// device knows, and lie elsewhere.
void restoreLists(
        faiss::gpu::IVFBase& index,
        const IvfLists& lists,
        const std::vector<idx_t>& lengths,
        cudaStream_t stream);

/// Vectors of the longest list, or more.
idx_t longestOf(const faiss::gpu::IVFBase& index);

/// INDICES_CPU: replaces list << 32 | place by the id, in place; -1 stays.
/// labels [n] on the host.
void replacePlaces(const faiss::gpu::IVFBase& index, idx_t n, idx_t* labels);

} // namespace faiss_bits::gpu::detail
