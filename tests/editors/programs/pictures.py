"""Pictures: transforms, augmentation, a data set and a grid."""

import tempfile

import tritensor as torch
from tritensor import nn
from tritensor.utils.data import DataLoader
from tritensor.vision import datasets, transforms
from tritensor.vision import utils as vutils
from tritensor.vision.transforms import functional as TF

augment = transforms.Compose(
    [
        transforms.RandomResizedCrop(24, scale=(0.8, 1.0)),
        transforms.RandomHorizontalFlip(),
        transforms.ColorJitter(brightness=0.1, contrast=0.1),
        transforms.ToTensor(),
        transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
        transforms.RandomErasing(p=0.2),
    ]
)
dataset = datasets.FakeData(size=12, image_size=(3, 32, 32), num_classes=4, transform=augment)
loader = DataLoader(dataset, batch_size=6, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(3, 4, 3, padding="same"), nn.ReLU(), nn.AdaptiveMaxPool2d(4), nn.Flatten(), nn.Linear(64, 4)
)
for images, labels in loader:
    loss = nn.functional.cross_entropy(model(images), labels)
    print(images.shape, labels.dtype, loss.item() > 0)
image, label = dataset[0]
flipped = TF.hflip(image)
resized = TF.resize(flipped, [12, 12], interpolation=transforms.InterpolationMode.BILINEAR, antialias=True)
picture = TF.to_pil_image(image * 0.5 + 0.5)
print(flipped.shape, resized.shape, picture.size, TF.rotate(image, 30).shape, TF.adjust_brightness(image, 1.1).max())
grid = vutils.make_grid(torch.stack([dataset[i][0] for i in range(4)]), nrow=2, normalize=True)
with tempfile.TemporaryDirectory() as folder:
    vutils.save_image(grid, f"{folder}/grid.png")
    again = torch.vision.io.read_image(f"{folder}/grid.png")
print(grid.shape, again.dtype, again.shape)
