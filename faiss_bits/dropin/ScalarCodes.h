/// FAISS's scalar quantizer on the device, as its scans are given it.
#pragma once

#include <string>

#include "faiss_bits/dropin/FaissFunctions.h"
#include "kernels/ivf/IvfLists.h"

namespace faiss_bits::dropin {

/// Both are empty if our kernels decode the lists.
struct ScalarReading {
    /// What is not as in a FAISS that we know, as text.
    std::string mismatch;
    /// What the call is an example of, if we have nothing for it.
    std::string left;
};

/// Sets coding and decoding of lists, whose d and layout are set. Index: int or
/// int64_t. resources: of the index, which made the quantizer.
template <class Index>
ScalarReading readScalarQuantizer(
        const faiss::gpu::GpuScalarQuantizer* quantizer,
        const faiss::gpu::GpuResources* resources,
        IvfLists& lists);

} // namespace faiss_bits::dropin
