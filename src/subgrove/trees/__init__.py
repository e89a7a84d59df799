"""Trees that find subgroups in which a feature hardly depends on the other columns."""

from subgrove.trees.cart import CartTree
from subgrove.trees.inference_trees import ConditionalInferenceTree, JointTree, TransformationTree
from subgrove.trees.nodes import ColumnTest, ColumnTests, Node
from subgrove.trees.splits import Split
from subgrove.trees.transformation import FittedTransformation, TransformationModel
from subgrove.trees.tree import Tree

__all__ = [
    "CartTree",
    "ColumnTest",
    "ColumnTests",
    "ConditionalInferenceTree",
    "FittedTransformation",
    "JointTree",
    "Node",
    "Split",
    "TransformationModel",
    "TransformationTree",
    "Tree",
]
