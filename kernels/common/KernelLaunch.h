#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

namespace faiss_bits {

/// Blocks of a cluster that every device with clusters takes. A larger size
/// has to be asked for, and a device need not have it.
constexpr int kPortableCluster = 8;

/// One launch of a kernel with a struct of parameters, and what it asks for
/// beyond blocks and threads. What the device refuses is an Error.
class KernelLaunch {
   public:
    /// @param sharedBytes of dynamic shared memory a block; above 48 KB what
    ///     allowSharedBytes() gave
    template <class Params>
    KernelLaunch(
            void (*kernel)(Params),
            dim3 blocks,
            unsigned threads,
            size_t sharedBytes,
            cudaStream_t stream)
            : KernelLaunch(
                      reinterpret_cast<const void*>(kernel),
                      blocks,
                      threads,
                      sharedBytes,
                      stream) {}

    KernelLaunch(
            const void* kernel,
            dim3 blocks,
            unsigned threads,
            size_t sharedBytes,
            cudaStream_t stream);

    /// Each `size` blocks along x are a cluster. One block is none.
    KernelLaunch& inClusters(unsigned size);

    /// All blocks are on the device together, or the launch is an error.
    KernelLaunch& cooperative();

    /// The launch may begin while the kernel before it still runs, if the
    /// kernel can wait for it (kernels/common/DependentLaunch.h). Else it is an
    /// ordinary one.
    KernelLaunch& early();

    /// Clusters of such blocks that the device holds at a time. Multiprocessors
    /// of a cluster are neighbours: not all of them make one.
    int mostClusters() const;

    void setBlocks(dim3 blocks) {
        config_.gridDim = blocks;
    }

    template <class Params>
    void enqueue(const Params& params) const {
        enqueueBytes(&params);
    }

    /// `params`: the bytes of the kernel's struct of parameters.
    void enqueueBytes(const void* params) const;

   private:
    static constexpr int kAttributes = 3;

    cudaLaunchAttribute& add(cudaLaunchAttributeID id);

    /// With the attributes, which move with this object.
    cudaLaunchConfig_t config() const;

    const void* kernel_;
    cudaLaunchConfig_t config_ = {};
    cudaLaunchAttribute attributes_[kAttributes] = {};
};

} // namespace faiss_bits
