"""Trees that find the subgroups in which a feature hardly depends on the other columns."""

from subgrove.trees.cart import CartTree
from subgrove.trees.conditional_inference import ConditionalInferenceTree
from subgrove.trees.joint import JointTree
from subgrove.trees.nodes import ColumnTest, ColumnTests, Node, Split
from subgrove.trees.structure import Tree
from subgrove.trees.transformation import FittedTransformation, TransformationModel
from subgrove.trees.transformation_tree import TransformationTree

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
