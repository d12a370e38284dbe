"""SAM's mask decoder: a mask for each point and box, and the mask's predicted quality."""

from __future__ import annotations

import os

import torch
from torch import Tensor, nn

from ..errors import TPAError
from ..weights.files import load_into, load_state_dict
from .model import SAMModel

# Prompts per call of the decoder.
_BATCH = 32


class SAMDecoder(nn.Module):
    """The frozen prompt encoder and mask decoder of SAM, always in float32.

    They are those of the package ``segment_anything`` (``pip install segment-anything-py``), with weights from the file
    of the image encoder.

    Args:
        model: The dimensions.
        checkpoint: The original file, None for random weights.
    """

    def __init__(self, model: SAMModel, checkpoint: str | os.PathLike | None) -> None:
        super().__init__()
        try:
            from segment_anything.modeling import MaskDecoder, PromptEncoder, TwoWayTransformer
        except ImportError as error:
            raise TPAError(
                "Trident's refinement requires the package segment_anything: run pip install segment-anything-py, "
                'or set refinement=None.'
            ) from error
        self.model = model
        self.prompt_encoder = PromptEncoder(
            embed_dim=model.prompt_dim,
            image_embedding_size=(model.grid, model.grid),
            input_image_size=(model.image_size, model.image_size),
            mask_in_chans=model.mask_in_chans,
        )
        self.mask_decoder = MaskDecoder(
            transformer=TwoWayTransformer(
                depth=2, embedding_dim=model.prompt_dim, mlp_dim=model.decoder_mlp, num_heads=model.decoder_heads
            ),
            transformer_dim=model.prompt_dim,
            iou_head_hidden_dim=model.iou_hidden,
        )
        if checkpoint is not None:
            parts = ('prompt_encoder.', 'mask_decoder.')
            state = {k: v for k, v in load_state_dict(checkpoint).items() if k.startswith(parts)}
            load_into(self, state, checkpoint, model='the mask decoder of SAM')
        self.requires_grad_(False).eval()

    @property
    def mask_side(self) -> int:
        """Side of the square maps of mask prompts and predicted masks."""
        return 4 * self.model.grid

    @torch.no_grad()
    def forward(self, embedding: Tensor, points: Tensor, boxes: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Predicts the masks of n prompts about one image.

        Args:
            embedding: (1, prompt_dim, g, g) of the image encoder.
            points: (n, 2) x and y of a pixel inside each mask, in pixels of the square input.
            boxes: (n, 4) left, top, right and bottom of a box around it.
            mask: (1, s, s) or (1, 1, s, s) low-resolution mask that all prompts share, s being :attr:`mask_side`.

        Returns:
            (n, s, s) logits of the masks, and (n,) their predicted intersection over union.
        """
        masks, quality = [], []
        with torch.autocast(embedding.device.type, enabled=False):
            position = self.prompt_encoder.get_dense_pe()
            for some_points, some_boxes in zip(points.split(_BATCH), boxes.split(_BATCH), strict=True):
                sparse, dense = self.prompt_encoder(None, some_boxes, mask)
                sparse = torch.cat((self._inside(some_points), sparse), 1)
                answers = self.mask_decoder(embedding, position, sparse, dense, multimask_output=False)
                masks.append(answers[0][:, 0])
                quality.append(answers[1][:, 0])
        return torch.cat(masks), torch.cat(quality)

    def _inside(self, points: Tensor) -> Tensor:
        """(n, 2) points inside masks -> (n, 1, prompt_dim) prompts.

        SAM's own encoder picks such points from others by a mask, which waits for a GPU.
        """
        encoder = self.prompt_encoder
        places = encoder.pe_layer.forward_with_coords(points[:, None] + 0.5, encoder.input_image_size)
        return places + encoder.point_embeddings[1].weight
