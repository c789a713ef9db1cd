"""The offline pipeline that fills an index: segmenting, linking, graph building, encoding, writing."""
